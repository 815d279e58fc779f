/** Certificates, keys, signing requests and kubeconfigs in OKD's file layout. */
export { type InstallContext, loadIfPresent, trustedBundle } from './authorities.ts';
export {
  createAuthority,
  createSelfSigned,
  generateKey,
  issue,
  type KeyPair,
  lifetimeFrom,
  loadAuthority,
  RELEASED_MS,
} from './certificate.ts';
export {
  readIfPresent,
  readSecretIfPresent,
  removePair,
  writeIfDifferent,
  writePair,
  writeWhole,
} from './files.ts';
export { canonicalIp, installEtcd, installMaster, installNode } from './install.ts';
export { createKubeconfig } from './kubeconfig.ts';
export { kubeletCertificates } from './kubelet-certificates.ts';
export { etcdFiles, masterFiles, nodeFiles, type PairFiles, predecessorOf, successorOf } from './layout.ts';
export { isRevoked, parseRevocationList } from './revocation.ts';
export { type RotationPhase, rotateAuthority, rotateServiceAccountKeys } from './rotation.ts';
export { createCertificateSigner } from './signer.ts';
export { createSigningRequest, parseSigningRequest } from './signing-request.ts';
export type { AlternativeNames } from './subject-names.ts';

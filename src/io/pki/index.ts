/** Certificates, keys, signing requests and kubeconfigs, and where OKD keeps them. */
export { createAuthority, createSelfSigned, generateKey, issue, lifetimeFrom, loadAuthority } from './certificate.ts';
export { writeIfDifferent, writeWhole } from './files.ts';
export { canonicalIp, type InstallContext, installEtcd, installMaster, installNode, loadIfPresent } from './install.ts';
export { createKubeconfig } from './kubeconfig.ts';
export { kubeletCertificates } from './kubelet-certificates.ts';
export { etcdFiles, masterFiles, nodeFiles } from './layout.ts';
export type { AlternativeNames } from './names.ts';
export { isRevoked, parseRevocationList } from './revocation.ts';
export { createCertificateSigner } from './signer.ts';
export { createSigningRequest, parseSigningRequest } from './signing-request.ts';

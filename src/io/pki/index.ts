/** Certificates, keys, signing requests and kubeconfigs, and where OKD keeps them. */
export {
  type Authority,
  createAuthority,
  generateKey,
  issue,
  type KeyPair,
  keyToPem,
  type LeafRequest,
  lifetimeFrom,
  loadAuthority,
  type Validity,
} from './certificate.ts';
export {
  type InstallContext,
  installEtcd,
  installMaster,
  installNode,
  loadIfPresent,
  type MasterInstall,
  type NodeInstall,
} from './install.ts';
export { createKubeconfig, type KubeconfigOptions } from './kubeconfig.ts';
export {
  type EtcdFiles,
  etcdFiles,
  type MasterFiles,
  masterFiles,
  type NodeFiles,
  nodeFiles,
  type PairFiles,
} from './layout.ts';
export type { AlternativeNames, Subject } from './names.ts';
export { createCertificateSigner } from './signer.ts';
export { createSigningRequest, parseSigningRequest, type SigningRequest, signRequest } from './signing-request.ts';

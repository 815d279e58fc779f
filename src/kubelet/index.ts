/** Public interface of the kubelet, which runs the pods of this host from the API and from manifests. */
export { CertificateManager } from './certificates/manager.ts';
export type { CertificateNames } from './certificates/port.ts';
export { CLIENT_SIGNER, requestSignature, SERVING_SIGNER } from './certificates/request.ts';
export { DEFAULT_KUBELET_CONFIG, type KubeletConfig, type KubeletPaths } from './config/kubelet-config.ts';
export type { ApiAccess, KubeletDeps, ServingCertificate } from './deps.ts';
export { createKubelet, type Kubelet, type KubeletReport } from './kubelet.ts';
export { keepNodeRoleLabels } from './node/node-role-labels.ts';
export type { HostCondition } from './node/node-status.ts';
export { configz } from './server/configz.ts';
export { decodeStaticPod } from './sources/static-pod.ts';
export type { VolumeDeps } from './volumes/compose.ts';

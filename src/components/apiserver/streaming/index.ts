/** Sub-resources that are conversations with a kubelet, pod or service. */
export { endUpgrade, stream, streamUpgrade } from './proxy.ts';

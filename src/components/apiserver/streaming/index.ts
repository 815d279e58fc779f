/** Sub-resources that are conversations with a kubelet, pod or service. */
export { endUpgrade } from './forward.ts';
export { stream, streamUpgrade } from './proxy.ts';

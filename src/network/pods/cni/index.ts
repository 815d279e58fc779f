/** Pod networks by the CNI plug-ins of `/etc/cni/net.d`. */
export { readNetworkConfig } from './config.ts';
export { createCniNetwork } from './network.ts';

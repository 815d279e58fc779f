/** The pod network of a host: a bridge, veth pairs, and an nftables table. */

export { type BridgeNetwork, createBridgeNetwork } from './bridge-network.ts';
export { createOverlayKernel } from './overlay-kernel.ts';
export { type HostNetwork, removeHostNetwork } from './removal.ts';
export { createServiceLink } from './service-link.ts';
export { createSharedAddress } from './shared-address.ts';

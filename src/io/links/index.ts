/** The pod network of a host: a bridge, veth pairs, and an nftables table. */

export { type BridgeNetwork, createBridgeNetwork } from './bridge-network.ts';
export { watchFilter } from './filter-watch.ts';
export { probeLinks } from './link-name.ts';
export { type HostNetworkRecord, readHostNetworkRecord, recordHostNetwork } from './network-record.ts';
export { createOverlayKernel } from './overlay-kernel.ts';
export { removeHostNetwork } from './removal.ts';
export { createServiceLink } from './service-link.ts';
export { createSharedAddress } from './shared-address.ts';

/** The pod network of a host: a bridge, veth pairs, and an nftables table. */

export { type BridgeNetwork, createBridgeNetwork } from './bridge/bridge-network.ts';
export { probeLinks } from './bridge/link-name.ts';
export { type HostNetworkRecord, readHostNetworkRecord, recordHostNetwork } from './bridge/network-record.ts';
export { removeHostNetwork } from './bridge/removal.ts';
export { watchFilter } from './filter/filter-watch.ts';
export { createOverlayKernel } from './overlay/overlay-kernel.ts';
export { createServiceLink } from './service-link.ts';
export { createSharedAddress } from './shared-address.ts';

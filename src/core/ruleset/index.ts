export {
  difference,
  emptyNftState,
  guardTable,
  type NftOptions,
  type NftState,
  needsReplace,
  nftState,
  replaceTable,
} from './nft.ts';
export type { Family, Protocol, ProxyEndpoint, ServicePort } from './service-port.ts';
export { type DesiredInput, type DesiredPorts, desiredServicePorts, type HealthCheck } from './services.ts';
export { UdpZones } from './zones.ts';

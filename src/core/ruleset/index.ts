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
export {
  type DesiredInput,
  type DesiredPorts,
  desiredServicePorts,
  type Family,
  type HealthCheck,
  type Protocol,
  type ProxyEndpoint,
  type ServicePort,
} from './services.ts';
export { UdpZones } from './zones.ts';

export {
  difference,
  emptyNftState,
  type NftOptions,
  type NftState,
  needsReplace,
  nftState,
  replaceTable,
} from './nft.ts';
export { desiredServicePorts, type Protocol, type ProxyEndpoint, type ServicePort } from './services.ts';

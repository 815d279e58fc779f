export { createNftFilter } from './nft-filter.ts';

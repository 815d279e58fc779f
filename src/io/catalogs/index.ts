export { createCatalogFiles } from './catalog-files.ts';
export { CatalogDigests } from './digests.ts';

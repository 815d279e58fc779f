export { createCatalogFiles } from './catalog-files.ts';

export { createCatalogFiles } from './catalog-files.ts';
export { CatalogCopies } from './copies.ts';

/** Sources of operator catalogs on this host, for the controllers. */
import { createCatalogFiles } from '../../io/catalogs/index.ts';
import { findImage } from '../../io/images/index.ts';
import { trees } from '../../io/trees/index.ts';

export interface CatalogPlaces {
  readonly catalogs: string;
  readonly images: string;
}

export const catalogFiles = ({ catalogs, images }: CatalogPlaces) =>
  createCatalogFiles({ directory: catalogs, findImage: (image) => findImage(images, trees, image) });

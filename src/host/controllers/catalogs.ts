/** Sources of operator catalogs on this host, for the controllers. */
import { createCatalogFiles } from '../../openshift/operators/olm/io/index.ts';
import { trees } from '../../runtime/directory-removal/index.ts';
import { findImage } from '../../runtime/images/index.ts';

export interface CatalogPlaces {
  readonly catalogs: string;
  readonly images: string;
}

export const catalogFiles = ({ catalogs, images }: CatalogPlaces) =>
  createCatalogFiles({ directory: catalogs, findImage: (image) => findImage(images, trees, image) });

/** Location of a CatalogSource's catalog on the host that runs the controllers. */

import { CodedError } from '../../../../base/errors.ts';
import type { CatalogSource } from '../kinds/types.ts';
import type { CatalogPlace } from './catalog-port.ts';

/** Returns the location of the catalog. Throws CodedError 'catalog' if the spec is not supported. */
export function placeOf({ spec = {} }: CatalogSource): CatalogPlace {
  const { address = '', image = '' } = spec;
  if (address === '') {
    if (image.startsWith('file://')) return { kind: 'directory', path: image.slice('file://'.length) };
    return { kind: 'image', image };
  }
  if (address.startsWith('file://')) return { kind: 'directory', path: address.slice('file://'.length) };
  if (address.startsWith('/')) return { kind: 'directory', path: address };
  throw new CodedError(
    'catalog',
    `spec.address: ${address.slice(0, 128)} is served by no catalog of this host; give file:// and a directory`,
  );
}

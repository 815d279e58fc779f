/**
 * Images. Hosts create them for the images in their local stores, and imports from registries create them. Source:
 * openshift/api image/v1.
 */

import { fieldError } from '../../../../api/meta/field-error.ts';
import type { JsonObject, KubeObject } from '../../../../api/meta/object.ts';
import { column, nameColumn } from '../../../../api/printing/columns.ts';
import type { KindDefinition } from '../../../../api/registry/definition.ts';
import { ALL_VERBS } from '../../../../api/registry/strategies.ts';

export interface ImageLayer {
  name: string;
  size: number;
  mediaType: string;
}

export interface Image extends KubeObject {
  dockerImageReference?: string;
  dockerImageMetadata?: JsonObject;
  dockerImageMetadataVersion?: string;
  dockerImageLayers?: ImageLayer[];
  signatures?: KubeObject[];
}

const DIGEST = /^sha256:[0-9a-f]{64}$/;

export const images: KindDefinition<Image> = {
  group: 'image.openshift.io',
  version: 'v1',
  kind: 'Image',
  plural: 'images',
  singular: 'image',
  listKind: 'ImageList',
  namespaced: false,
  verbs: ALL_VERBS,
  schemaName: 'com.github.openshift.api.image.v1.Image',
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/images',
  nameRule: 'pathSegment',
  strategy: {
    validateCreate: ({ metadata }) =>
      DIGEST.test(metadata?.name ?? '')
        ? []
        : [fieldError.invalid('metadata.name', metadata?.name ?? '', 'must be sha256: and 64 hexadecimal digits')],
    validate: ({ dockerImageReference }) =>
      dockerImageReference === undefined || dockerImageReference === ''
        ? [fieldError.required('dockerImageReference')]
        : [],
  },
  columns: [
    nameColumn,
    column<Image>('Image Reference', 'Pull specification.', ({ dockerImageReference }) => dockerImageReference ?? ''),
  ],
};

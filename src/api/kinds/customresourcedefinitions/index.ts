/**
 * Custom resource definitions, to be read only: there are none, and clients that look for one (kubectl does, before it says that it does
 * not know a kind) get that answer instead of an error about the question.
 */
import type { CustomResourceDefinition } from 'kubernetes-types/apiextensions/v1';
import { column, nameColumn } from '../../printing/columns.ts';
import type { KindDefinition } from '../../registry/definition.ts';

export const customResourceDefinitions: KindDefinition<CustomResourceDefinition> = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  singular: 'customresourcedefinition',
  listKind: 'CustomResourceDefinitionList',
  namespaced: false,
  shortNames: ['crd', 'crds'],
  categories: ['api-extensions'],
  verbs: ['get', 'list', 'watch'],
  schemaName: 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition',
  storagePrefix: 'apiextensions.k8s.io/customresourcedefinitions',
  strategy: {},
  columns: [
    nameColumn,
    column<CustomResourceDefinition>(
      'Created At',
      'When it was created.',
      (each) => each.metadata?.creationTimestamp ?? '',
      { type: 'date' },
    ),
  ],
};

/**
 * Templates for the claims of pods. Source: k8s.io/kubernetes/pkg/registry/resource/resourceclaimtemplate,
 * pkg/apis/resource/validation, pkg/printers/internalversion.
 */
import { setClaimDefaults, validateClaimSpec } from '../../../devices/claims.ts';
import type { ResourceClaimTemplate } from '../../../devices/types.ts';
import type { FieldError } from '../../../meta/field-error.ts';
import { validateAnnotations, validateImmutable, validateLabels } from '../../../meta/validation.ts';
import { ageColumn, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS } from '../../../registry/strategies.ts';

const validateNew = ({ spec }: ResourceClaimTemplate): FieldError[] => [
  ...validateLabels(spec?.metadata?.labels, 'spec.metadata.labels'),
  ...validateAnnotations(spec?.metadata?.annotations, 'spec.metadata.annotations'),
  ...validateClaimSpec(spec?.spec, 'spec.spec'),
];

export const resourceClaimTemplates: KindDefinition<ResourceClaimTemplate> = {
  group: 'resource.k8s.io',
  version: 'v1',
  kind: 'ResourceClaimTemplate',
  plural: 'resourceclaimtemplates',
  singular: 'resourceclaimtemplate',
  listKind: 'ResourceClaimTemplateList',
  namespaced: true,
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.resource.v1.ResourceClaimTemplate',
  returnsDeleted: true,
  storagePrefix: 'resourceclaimtemplates',
  setDefaults: (template) => setClaimDefaults(template.spec?.spec),
  strategy: {
    // The spec is immutable, so an update only needs the comparison below.
    validate: (template, old) => (old === undefined ? validateNew(template) : []),
    validateUpdate: (each, old) => validateImmutable(each.spec, old.spec, 'spec'),
  },
  columns: [nameColumn, ageColumn],
};

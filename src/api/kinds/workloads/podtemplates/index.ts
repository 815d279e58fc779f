/** Pod templates. Source: k8s.io/kubernetes/pkg/registry/core/podtemplate. */
import type { PodTemplate } from '../../../generated/core/v1.ts';
import { semanticEqual } from '../../../meta/equality.ts';
import { nextGeneration } from '../../../meta/object.ts';
import { changedTemplateWarnings } from '../../../podspec/checks/workload-warnings.ts';
import { setPodTemplateDefaults } from '../../../podspec/defaults.ts';
import { validatePodTemplate } from '../../../podspec/validate.ts';
import { column, labelsText, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, keepGeneration, metadataOf } from '../../../registry/strategies.ts';

const containers = (each: PodTemplate) => each.template?.spec?.containers ?? [];

export const podTemplates: KindDefinition<PodTemplate> = {
  group: '',
  version: 'v1',
  kind: 'PodTemplate',
  plural: 'podtemplates',
  singular: 'podtemplate',
  listKind: 'PodTemplateList',
  namespaced: true,
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.core.v1.PodTemplate',
  skeleton: { template: { metadata: {}, spec: { containers: null } } },
  returnsDeleted: true,
  storagePrefix: 'podtemplates',
  setDefaults(each) {
    each.template ??= {};
    setPodTemplateDefaults(each.template);
  },
  strategy: {
    prepareForCreate(each) {
      metadataOf(each).generation = 1;
    },
    prepareForUpdate(each, old) {
      keepGeneration(each, old);
      if (!semanticEqual(each.template, old.template)) {
        metadataOf(each).generation = nextGeneration(old);
      }
    },
    validate: (each) => validatePodTemplate(each.template, 'template'),
    warnings: (each, old) => changedTemplateWarnings(each.template, 'template', each, old),
  },
  columns: [
    nameColumn,
    column<PodTemplate>('Containers', 'Names of each container in the template.', (each) =>
      containers(each)
        .map(({ name }) => name)
        .join(','),
    ),
    column<PodTemplate>('Images', 'Images referenced by each container in the template.', (each) =>
      containers(each)
        .map(({ image }) => image ?? '')
        .join(','),
    ),
    column<PodTemplate>('Pod Labels', 'The labels of pods made from the template.', (each) =>
      labelsText(each.template?.metadata?.labels),
    ),
  ],
};

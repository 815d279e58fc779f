/** Stateful sets. Source: k8s.io/kubernetes/pkg/registry/apps/statefulset, pkg/apis/apps/v1 defaults. */
import type { StatefulSet, StatefulSetSpec } from '../../../generated/apps/v1.ts';
import { isSet } from '../../../meta/validation.ts';
import { isNewSpec, workloadWarnings } from '../../../podspec/checks/workload-warnings.ts';
import { setPodTemplateDefaults } from '../../../podspec/defaults.ts';
import { ageColumn, column, nameColumn, selectorText, workloadColumns } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../registry/strategies.ts';
import { setClaimDefaults } from '../../../volumes/claim.ts';
import { claimWarnings } from '../../../volumes/warnings.ts';
import { validateStatefulSet, validateStatefulSetStatus, validateStatefulSetUpdate } from './validation.ts';

const { strategy, statusStrategy } = specStatusStrategies<StatefulSet>({
  initialStatus: () => ({ replicas: 0, availableReplicas: 0 }),
  validate: validateStatefulSet,
  validateUpdate: validateStatefulSetUpdate,
  validateStatusUpdate: validateStatefulSetStatus,
  warnings(set, old) {
    if (!isNewSpec(set, old)) return [];
    const claims = (set.spec?.volumeClaimTemplates ?? []).flatMap(({ spec }, index) =>
      claimWarnings(spec, `spec.volumeClaimTemplates[${index}]${old === undefined ? '' : '.Spec'}`),
    );
    const negative = (set.spec?.revisionHistoryLimit ?? 0) < 0;
    const all = 'a negative value retains all historical revisions; a value >= 0 is recommended';
    const limit = negative ? [`spec.revisionHistoryLimit: ${all}`] : [];
    return [...workloadWarnings(set, old), ...claims, ...limit];
  },
});

export const statefulSets: KindDefinition<StatefulSet> = {
  group: 'apps',
  version: 'v1',
  kind: 'StatefulSet',
  plural: 'statefulsets',
  singular: 'statefulset',
  listKind: 'StatefulSetList',
  namespaced: true,
  nameRule: 'dns1123Label',
  shortNames: ['sts'],
  categories: ['all'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.apps.v1.StatefulSet',
  skeleton: {
    spec: { selector: null, template: { metadata: {}, spec: { containers: null } }, updateStrategy: {} },
    status: {},
  },
  storagePrefix: 'statefulsets',
  setDefaults(set) {
    set.spec ??= {} as StatefulSetSpec;
    const spec = set.spec;
    spec.template ??= {};
    if (!isSet(spec.podManagementPolicy)) spec.podManagementPolicy = 'OrderedReady';
    spec.updateStrategy ??= {};
    if (!isSet(spec.updateStrategy.type)) spec.updateStrategy.type = 'RollingUpdate';
    if (spec.updateStrategy.type === 'RollingUpdate') {
      spec.updateStrategy.rollingUpdate ??= {};
      spec.updateStrategy.rollingUpdate.partition ??= 0;
    }
    spec.persistentVolumeClaimRetentionPolicy ??= {};
    const retention = spec.persistentVolumeClaimRetentionPolicy;
    if (!isSet(retention.whenDeleted)) retention.whenDeleted = 'Retain';
    if (!isSet(retention.whenScaled)) retention.whenScaled = 'Retain';
    spec.replicas ??= 1;
    spec.revisionHistoryLimit ??= 10;
    setPodTemplateDefaults(spec.template);
    for (const claim of spec.volumeClaimTemplates ?? []) {
      claim.apiVersion = 'v1';
      claim.kind = 'PersistentVolumeClaim';
      setClaimDefaults(claim);
    }
  },
  strategy,
  statusStrategy,
  columns: [
    nameColumn,
    column<StatefulSet>(
      'Ready',
      'Number of ready pods out of those desired.',
      (set) => `${set.status?.readyReplicas ?? 0}/${set.spec?.replicas ?? 0}`,
    ),
    ageColumn,
    ...workloadColumns<StatefulSet>(
      (set) => set.spec?.template,
      (set) => selectorText(set.spec?.selector),
    ).slice(0, 2),
  ],
  scale: {
    specReplicasPath: '.spec.replicas',
    statusReplicasPath: '.status.replicas',
    selector(object) {
      const text = selectorText((object as StatefulSet).spec?.selector);
      return text === '<none>' ? '' : text;
    },
  },
};

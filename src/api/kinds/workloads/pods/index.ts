/** Pods. Source: k8s.io/kubernetes/pkg/registry/core/pod. */

import { dns1123LabelErrors } from '../../../../base/names.ts';
import type { Pod } from '../../../generated/core/v1.ts';
import { appArmorWarnings, fillAppArmorFields } from '../../../podspec/annotations.ts';
import { templateWarnings } from '../../../podspec/checks/warnings.ts';
import { takeResizeOnly, validatePodResize } from '../../../podspec/containers/resize.ts';
import { setPodDefaults } from '../../../podspec/defaults.ts';
import { mergeLabelKeys } from '../../../podspec/label-keys.ts';
import { qosClassOf } from '../../../podspec/qos.ts';
import { podStatusWarnings, preserveGenerations, validatePodStatusUpdate } from '../../../podspec/status.ts';
import { validateEphemeralContainersUpdate, validatePodUpdate } from '../../../podspec/update.ts';
import { validatePod, validatePodCreate } from '../../../podspec/validate.ts';
import { ageColumn, column, NONE, nameColumn } from '../../../printing/columns.ts';
import { restartsText, summarizePod } from '../../../printing/pod-status.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import {
  ALL_VERBS,
  bumpGeneration,
  metadataOf,
  restoreMetadata,
  restorePart,
  specStatusStrategies,
} from '../../../registry/strategies.ts';

const PROXY_VERBS = ['create', 'delete', 'get', 'patch', 'update'];
const STREAM_VERBS = ['create', 'get'];

const { strategy, statusStrategy } = specStatusStrategies<Pod>({
  prepareForCreate(pod) {
    mergeLabelKeys(pod);
    fillAppArmorFields(pod);
  },
  initialStatus: (pod) => ({
    phase: 'Pending',
    qosClass: qosClassOf(pod),
    ...((pod.spec?.schedulingGates ?? []).length === 0
      ? {}
      : {
          conditions: [
            {
              type: 'PodScheduled',
              status: 'False',
              reason: 'SchedulingGated',
              message: 'Scheduling is blocked due to non-empty scheduling gates',
            },
          ],
        }),
  }),
  prepareForStatusUpdate(pod, old) {
    // An update can neither start a deletion nor change its time. Old kubelets drop fields of owner references that
    // they do not know.
    if (old.metadata?.deletionTimestamp === undefined) delete metadataOf(pod).deletionTimestamp;
    const owners = old.metadata?.ownerReferences;
    if (owners === undefined) delete metadataOf(pod).ownerReferences;
    else metadataOf(pod).ownerReferences = owners;
    preserveGenerations(pod, old);
    if (pod.status !== undefined && old.status?.qosClass !== undefined) pod.status.qosClass ??= old.status.qosClass;
  },
  validate: validatePod,
  validateCreate: validatePodCreate,
  validateUpdate: validatePodUpdate,
  validateStatusUpdate: validatePodStatusUpdate,
  // No warnings on update: most updates come from controllers, and they are frequent.
  warnings: (pod, old) => (old === undefined ? podWarnings(pod) : []),
});

function podWarnings(pod: Pod): string[] {
  const wrong = dns1123LabelErrors(pod.metadata?.name ?? '');
  const name =
    wrong.length === 0
      ? []
      : [
          `metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [${wrong.join(' ')}]`,
        ];
  return [...name, ...appArmorWarnings(pod), ...templateWarnings(pod, '')];
}

export const pods: KindDefinition<Pod> = {
  group: '',
  version: 'v1',
  kind: 'Pod',
  plural: 'pods',
  singular: 'pod',
  listKind: 'PodList',
  namespaced: true,
  shortNames: ['po'],
  categories: ['all'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.core.v1.Pod',
  skeleton: { spec: { containers: null }, status: {} },
  returnsDeleted: true,
  storagePrefix: 'pods',
  essentialUpdates: ['status'],
  setDefaults: setPodDefaults,
  strategy,
  statusStrategy: { ...statusStrategy, warnings: podStatusWarnings },
  statusResetFields: [['spec'], ['metadata', 'deletionTimestamp'], ['metadata', 'ownerReferences']],
  subresourceStrategies: {
    ephemeralcontainers: {
      prepareForUpdate(pod, old) {
        const ephemeral = pod.spec?.ephemeralContainers;
        restorePart(pod, old, 'status');
        restoreMetadata(pod, old);
        // Only the list of ephemeral containers may change, so all other fields are copied from the stored pod.
        const spec = structuredClone(old.spec);
        if (spec !== undefined) {
          if (ephemeral === undefined) delete spec.ephemeralContainers;
          else spec.ephemeralContainers = ephemeral;
          pod.spec = spec;
        }
        bumpGeneration(pod, old);
      },
      validateUpdate: validateEphemeralContainersUpdate,
    },
    resize: {
      prepareForUpdate(pod, old) {
        takeResizeOnly(pod, old);
        bumpGeneration(pod, old);
      },
      validateUpdate: validatePodResize,
    },
  },
  defaultGraceSeconds(pod) {
    // A pod that is not scheduled or has terminated needs no grace period.
    if ((pod.spec?.nodeName ?? '') === '') return undefined;
    const phase = pod.status?.phase;
    if (phase === 'Succeeded' || phase === 'Failed') return undefined;
    // As upstream, a negative period means one second.
    const seconds = pod.spec?.terminationGracePeriodSeconds ?? 30;
    return seconds < 0 ? 1 : seconds;
  },
  columns: [
    nameColumn,
    column<Pod>('Ready', 'The aggregate readiness state of this pod for accepting traffic.', (pod) => {
      const summary = summarizePod(pod);
      return `${summary.ready}/${summary.total}`;
    }),
    column<Pod>('Status', 'The aggregate status of the containers in this pod.', (pod) => summarizePod(pod).status),
    column<Pod>(
      'Restarts',
      'The number of times the containers in this pod have been restarted and when the last container was restarted.',
      (pod, nowMs) => restartsText(summarizePod(pod), nowMs),
    ),
    ageColumn,
    column<Pod>('IP', 'The address of the pod.', (pod) => pod.status?.podIPs?.[0]?.ip || pod.status?.podIP || NONE, {
      wide: true,
    }),
    column<Pod>('Node', 'The node the pod runs on.', (pod) => pod.spec?.nodeName || NONE, { wide: true }),
    column<Pod>(
      'Nominated Node',
      'The node that pods are being evicted from for this pod.',
      (pod) => pod.status?.nominatedNodeName || NONE,
      { wide: true },
    ),
    column<Pod>('Readiness Gates', 'Additional conditions evaluated for readiness.', readinessGatesText, {
      wide: true,
    }),
  ],
  fieldSelectors: {
    'spec.nodeName': (pod) => pod.spec?.nodeName ?? '',
    'spec.restartPolicy': (pod) => pod.spec?.restartPolicy ?? '',
    'spec.schedulerName': (pod) => pod.spec?.schedulerName ?? '',
    'spec.serviceAccountName': (pod) => pod.spec?.serviceAccountName ?? '',
    'spec.hostNetwork': (pod) => String(pod.spec?.hostNetwork ?? false),
    'status.phase': (pod) => pod.status?.phase ?? '',
    'status.podIP': (pod) => pod.status?.podIPs?.[0]?.ip ?? pod.status?.podIP ?? '',
    'status.nominatedNodeName': (pod) => pod.status?.nominatedNodeName ?? '',
  },
  extraSubresources: [
    { name: 'attach', kind: 'PodAttachOptions', verbs: STREAM_VERBS },
    { name: 'binding', kind: 'Binding', verbs: ['create'] },
    { name: 'ephemeralcontainers', kind: 'Pod', verbs: ['get', 'patch', 'update'] },
    { name: 'eviction', kind: 'Eviction', group: 'policy', version: 'v1', verbs: ['create'] },
    { name: 'exec', kind: 'PodExecOptions', verbs: STREAM_VERBS },
    { name: 'log', kind: 'Pod', verbs: ['get'] },
    { name: 'portforward', kind: 'PodPortForwardOptions', verbs: STREAM_VERBS },
    { name: 'proxy', kind: 'PodProxyOptions', verbs: PROXY_VERBS },
    { name: 'resize', kind: 'Pod', verbs: ['get', 'patch', 'update'] },
  ],
};

function readinessGatesText(pod: Pod): string {
  const gates = pod.spec?.readinessGates ?? [];
  if (gates.length === 0) return NONE;
  const holding = new Set(
    (pod.status?.conditions ?? []).filter((each) => each.status === 'True').map((each) => each.type),
  );
  const passed = gates.filter((gate) => holding.has(gate.conditionType));
  return `${passed.length}/${gates.length}`;
}

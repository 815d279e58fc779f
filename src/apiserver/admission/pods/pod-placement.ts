/**
 * Placement plug-ins: node selectors by namespace, anti-affinity limits, topology labels of the node.
 * Sources: plugin/pkg/admission/{podnodeselector,antiaffinity,podtopologylabels}.
 */

import type { Binding, Pod } from '../../../api/generated/core/v1.ts';
import { type Labels, labelsOfText } from '../../../base/selector.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';
import type { AdmissionPlugin } from '../admission.ts';
import { type NamespaceSource, namespaceOf } from '../matching.ts';
import type { PodNodeSelectorSettings } from '../settings.ts';
import { forbid, isFor } from '../subject.ts';

const SELECTOR_ANNOTATION = 'scheduler.alpha.kubernetes.io/node-selector';
const HOSTNAME = 'kubernetes.io/hostname';
const TOPOLOGY_LABELS = ['topology.kubernetes.io/region', 'topology.kubernetes.io/zone'] as const;

const isNewPod = (request: AdmissionRequest): boolean =>
  request.operation === 'CREATE' && isFor(request, '', 'pods') && request.subresource === '';

/** Merges the node selector of the namespace into pods and rejects pods whose own selector conflicts with it. */
export function podNodeSelector(settings: PodNodeSelectorSettings, namespaces: NamespaceSource): AdmissionPlugin {
  const selectorFor = async (request: AdmissionRequest): Promise<Labels> => {
    const annotations = (await namespaceOf(request, namespaces))?.metadata?.annotations ?? {};
    if (!Object.hasOwn(annotations, SELECTOR_ANNOTATION)) return settings.clusterDefault;
    const selector = labelsOfText(annotations[SELECTOR_ANNOTATION] ?? '');
    if (selector === undefined) {
      throw forbid(
        request,
        `the namespace's annotation ${SELECTOR_ANNOTATION} is not a list of the form key=value,key=value`,
      );
    }
    return selector;
  };
  const checkConflict = (request: AdmissionRequest, pod: Pod, selector: Labels): void => {
    const wanted = pod.spec?.nodeSelector ?? {};
    const conflicts = Object.entries(selector).some(
      ([key, value]) => Object.hasOwn(wanted, key) && wanted[key] !== value,
    );
    if (conflicts) throw forbid(request, 'pod node label selector conflicts with its namespace node label selector');
  };
  return {
    name: 'PodNodeSelector',
    resources: ['pods'],
    async mutate(request) {
      const pod = request.object as Pod | undefined;
      if (!isNewPod(request) || pod?.spec === undefined) return;
      const selector = await selectorFor(request);
      checkConflict(request, pod, selector);
      const merged = { ...selector, ...pod.spec.nodeSelector };
      if (Object.keys(merged).length > 0) pod.spec.nodeSelector = merged;
    },
    async validate(request) {
      const pod = request.object as Pod | undefined;
      if (!isNewPod(request) || pod?.spec === undefined) return;
      checkConflict(request, pod, await selectorFor(request));
      const allowed = settings.whitelists.get(request.namespace) ?? {};
      if (Object.keys(allowed).length === 0) return;
      const isAllowed = ([key, value]: [string, string]): boolean =>
        Object.hasOwn(allowed, key) && allowed[key] === value;
      if (!Object.entries(pod.spec.nodeSelector ?? {}).every(isAllowed)) {
        throw forbid(request, 'pod node label selector labels conflict with its namespace whitelist');
      }
    },
  };
}

/** Rejects pods whose required anti-affinity has a larger topology than one node, such as a zone. */
export const limitPodHardAntiAffinityTopology: AdmissionPlugin = {
  name: 'LimitPodHardAntiAffinityTopology',
  resources: ['pods'],
  validate(request) {
    const isWrite = request.operation === 'CREATE' || request.operation === 'UPDATE';
    if (!isWrite || !isFor(request, '', 'pods') || request.subresource !== '') return;
    const affinity = (request.object as Pod).spec?.affinity?.podAntiAffinity;
    for (const { topologyKey } of affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []) {
      if (topologyKey === HOSTNAME) continue;
      throw forbid(
        request,
        `affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey ${topologyKey} but only key ${HOSTNAME} is allowed`,
      );
    }
  },
};

/**
 * Copies the zone and region labels of the node to its pods, so that pods can read the labels with the downward API.
 */
export function podTopologyLabels(node: (name: string) => CachedObject | undefined): AdmissionPlugin {
  const label = (object: { metadata?: { labels?: Record<string, string> } }, name: string): void => {
    const all = node(name)?.labels() ?? {};
    const found = TOPOLOGY_LABELS.filter((key) => Object.hasOwn(all, key)).map((key) => [key, all[key] ?? '']);
    if (found.length === 0) return;
    object.metadata ??= {};
    object.metadata.labels = { ...Object.fromEntries(found), ...object.metadata.labels };
  };
  return {
    name: 'PodTopologyLabels',
    resources: ['pods'],
    takesBodies: true,
    mutate(request) {
      if (request.operation !== 'CREATE' || !isFor(request, '', 'pods')) return;
      if (request.subresource === 'binding') {
        const binding = request.body as Binding | undefined;
        if (binding?.target.kind === 'Node') label(binding, binding.target.name ?? '');
      } else if (request.subresource === '' && request.object !== undefined) {
        const pod = request.object as Pod;
        if ((pod.spec?.nodeName ?? '') !== '') label(pod, pod.spec?.nodeName ?? '');
      }
    },
  };
}

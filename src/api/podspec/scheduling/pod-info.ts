/** A pod with precomputed values for filters and scorers. */

import { toUid, type Uid } from '../../../base/brand.ts';
import { isEverything, type LabelSelector, labelSelectorOf, matchesLabels, nothing } from '../../../base/selector.ts';
import type { Pod, PodAffinityTerm, WeightedPodAffinityTerm } from '../../generated/core/v1.ts';
import { claimNames } from '../../volumes/pod-claims.ts';
import { type Amounts, assumedRequests, heldRequests, reportsResources } from './node-resources.ts';

/** A parsed pod (anti-)affinity term. */
export interface AffinityTerm {
  /** Equivalent terms have the same key. */
  readonly key: string;
  /** Terms that select the same pods have the same key, whatever their topology key is. */
  readonly selectionKey: string;
  readonly topologyKey: string;
  readonly selector: LabelSelector;
  readonly namespaces: ReadonlySet<string>;
  /** Undefined if the term selects only the listed namespaces. */
  readonly namespaceSelector: LabelSelector | undefined;
}

export interface WeightedTerm {
  readonly weight: number;
  readonly term: AffinityTerm;
}

/** A term of a placed pod, which affects the pods it selects. */
export interface PlacedPodTerm {
  readonly kind: 'anti' | 'affinity' | 'preferred';
  readonly key: string;
  /** Negative for preferred anti-affinity; 0 for required terms. */
  readonly weight: number;
  readonly term: AffinityTerm;
}

export interface HostPort {
  readonly ip: string;
  readonly protocol: string;
  readonly port: number;
}

export interface PodInfo {
  readonly pod: Pod;
  readonly key: string;
  readonly uid: Uid;
  readonly namespace: string;
  readonly priority: number;
  readonly requests: Amounts;
  readonly assumed: Amounts;
  readonly hostPorts: readonly HostPort[];
  readonly affinity: readonly AffinityTerm[];
  readonly antiAffinity: readonly AffinityTerm[];
  readonly preferredAffinity: readonly WeightedTerm[];
  readonly preferredAntiAffinity: readonly WeightedTerm[];
  readonly existingTerms: readonly PlacedPodTerm[];
  /** Claims as `<namespace>/<name>`. */
  readonly claims: readonly string[];
}

/** @param known Earlier version of the pod. If the generation is equal, values that depend only on it are reused. */
export function podInfoOf(pod: Pod, known?: PodInfo): PodInfo {
  const generation = pod.metadata?.generation;
  const same = generation !== undefined && generation === known?.pod.metadata?.generation ? known : undefined;
  const namespace = pod.metadata?.namespace ?? '';
  const affinity = pod.spec?.affinity;
  const required = (terms: readonly PodAffinityTerm[] | undefined): AffinityTerm[] =>
    (terms ?? []).map((term) => affinityTerm(term, pod));
  const preferred = (terms: readonly WeightedPodAffinityTerm[] | undefined): WeightedTerm[] =>
    (terms ?? []).map((each) => ({ weight: each.weight, term: affinityTerm(each.podAffinityTerm, pod) }));
  const terms = {
    affinity: required(affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution),
    antiAffinity: required(affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution),
    preferredAffinity: preferred(affinity?.podAffinity?.preferredDuringSchedulingIgnoredDuringExecution),
    preferredAntiAffinity: preferred(affinity?.podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution),
  };
  return {
    pod,
    key: `${namespace}/${pod.metadata?.name ?? ''}`,
    uid: toUid(pod.metadata?.uid),
    namespace,
    priority: pod.spec?.priority ?? 0,
    // Amounts in the status change the requests without a new generation, so they are computed again.
    requests: same !== undefined && !reportsResources(pod) ? same.requests : heldRequests(pod),
    assumed: same?.assumed ?? assumedRequests(pod),
    hostPorts: same?.hostPorts ?? hostPortsOf(pod),
    ...terms,
    existingTerms: existingTermsOf(terms),
    claims: claimNames(pod).map((name) => `${namespace}/${name}`),
  };
}

type Terms = Pick<PodInfo, 'affinity' | 'antiAffinity' | 'preferredAffinity' | 'preferredAntiAffinity'>;

function existingTermsOf(terms: Terms): PlacedPodTerm[] {
  const existing = (kind: PlacedPodTerm['kind'], term: AffinityTerm, weight: number): PlacedPodTerm => ({
    kind,
    weight,
    term,
    key: `${kind} ${weight} ${term.key}`,
  });
  return [
    ...terms.antiAffinity.map((term) => existing('anti', term, 0)),
    ...terms.affinity.map((term) => existing('affinity', term, 0)),
    ...terms.preferredAffinity.map(({ term, weight }) => existing('preferred', term, weight)),
    ...terms.preferredAntiAffinity.map(({ term, weight }) => existing('preferred', term, -weight)),
  ];
}

/**
 * Parses an affinity term. Without namespaces and namespace selector, the term selects in the pod's own namespace; an
 * empty namespace selector selects every namespace.
 */
function affinityTerm(term: PodAffinityTerm, pod: Pod): AffinityTerm {
  const named = term.namespaces ?? [];
  const own = named.length === 0 && term.namespaceSelector === undefined;
  const selector = withLabelKeys(safeSelector(term.labelSelector), pod, term.matchLabelKeys, term.mismatchLabelKeys);
  const namespaces = own ? [pod.metadata?.namespace ?? ''] : named.toSorted();
  const namespaceSelector = term.namespaceSelector === undefined ? undefined : safeSelector(term.namespaceSelector);
  const selectionKey = JSON.stringify([namespaces, namespaceSelector, selector]);
  return {
    key: `${term.topologyKey} ${selectionKey}`,
    selectionKey,
    topologyKey: term.topologyKey,
    selector,
    namespaces: new Set(namespaces),
    namespaceSelector,
  };
}

/** Adds requirements with the pod's own values of the `match` keys (equal) and the `mismatch` keys (different). */
export function withLabelKeys(
  selector: LabelSelector,
  pod: Pod,
  match: readonly string[] = [],
  mismatch: readonly string[] = [],
): LabelSelector {
  const labels = pod.metadata?.labels ?? {};
  const requirement = (key: string, operator: 'in' | 'notin') =>
    Object.hasOwn(labels, key) ? [{ key, operator, values: [labels[key] ?? ''] }] : [];
  const extra = [
    ...match.flatMap((key) => requirement(key, 'in')),
    ...mismatch.flatMap((key) => requirement(key, 'notin')),
  ];
  return extra.length === 0 ? selector : { ...selector, requirements: [...selector.requirements, ...extra] };
}

/**
 * Parses a selector. Validation rejects invalid selectors. An invalid one that occurs nevertheless selects no pods, so
 * that it does not stop the scheduler.
 */
export function safeSelector(object: Parameters<typeof labelSelectorOf>[0]): LabelSelector {
  try {
    return labelSelectorOf(object);
  } catch {
    return nothing;
  }
}

/** Whether the term selects `other`. `labelsOf` returns a namespace's labels. */
export function termSelects(
  term: AffinityTerm,
  other: PodInfo,
  labelsOf: (namespace: string) => Readonly<Record<string, string>>,
): boolean {
  if (!term.namespaces.has(other.namespace)) {
    const bySelector = term.namespaceSelector;
    if (bySelector === undefined) return false;
    if (!isEverything(bySelector) && !matchesLabels(bySelector, labelsOf(other.namespace))) return false;
  }
  return matchesLabels(term.selector, other.pod.metadata?.labels);
}

function hostPortsOf(pod: Pod): HostPort[] {
  const ports: HostPort[] = [];
  const sidecars = (pod.spec?.initContainers ?? []).filter((container) => container.restartPolicy === 'Always');
  for (const container of [...(pod.spec?.containers ?? []), ...sidecars]) {
    for (const port of container.ports ?? []) {
      if (port.hostPort === undefined || port.hostPort <= 0) continue;
      const ip = port.hostIP ?? '';
      ports.push({ ip: ip === '' ? '0.0.0.0' : ip, protocol: port.protocol ?? 'TCP', port: port.hostPort });
    }
  }
  return ports;
}

/** Host ports that conflict with the same port on any address of the host. */
export function hostPortsOnAllAddresses(ports: readonly Pick<HostPort, 'protocol' | 'port'>[]): HostPort[] {
  return ports.map(({ protocol, port }) => ({ ip: '0.0.0.0', protocol, port }));
}

export function portsConflict(a: HostPort, b: HostPort): boolean {
  if (a.port !== b.port || a.protocol !== b.protocol) return false;
  return a.ip === b.ip || isWildcard(a.ip) || isWildcard(b.ip);
}

const isWildcard = (ip: string): boolean => ip === '0.0.0.0' || ip === '::';

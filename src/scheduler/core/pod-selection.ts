/** Selection of pods to count. Pods with equal rules have selections with the same key, so they share the counts. */

import { type AffinityTerm, type PodInfo, termSelects } from '../../api/podspec/scheduling/pod-info.ts';
import { isEverything, type LabelSelector, matchesLabels } from '../../base/selector.ts';

export interface PodSelection {
  /** Key that is equal for selections that select the same pods. */
  readonly key: string;
  /**
   * Labels (`<namespace> <key> <value>`) of which every selected pod has at least one; undefined if there are no such
   * labels.
   */
  readonly anchors: readonly string[] | undefined;
  /** Whether the selection depends on labels of namespaces. */
  readonly readsNamespaces: boolean;
  selects(other: PodInfo): boolean;
}

type LabelsOf = (namespace: string) => Readonly<Record<string, string>>;

export const anchorOf = (namespace: string, key: string, value: string): string => `${namespace} ${key} ${value}`;

/**
 * Pods that count for topology spreading: pods in the namespace that all selectors match and that are not being
 * deleted.
 */
export function selectionInNamespace(namespace: string, selectors: readonly LabelSelector[]): PodSelection {
  return {
    key: `${namespace} ${JSON.stringify(selectors)}`,
    anchors: anchorsOf([namespace], selectors),
    readsNamespaces: false,
    selects: (other) =>
      other.namespace === namespace &&
      other.pod.metadata?.deletionTimestamp === undefined &&
      selectors.every((selector) => matchesLabels(selector, other.pod.metadata?.labels)),
  };
}

/** Pods that every term selects. */
export function selectionOfTerms(terms: readonly AffinityTerm[], labelsOf: LabelsOf): PodSelection {
  const anchored = terms.find(({ namespaceSelector }) => namespaceSelector === undefined);
  return {
    key: `terms ${terms.map(({ selectionKey }) => selectionKey).join(' ')}`,
    anchors: anchored === undefined ? undefined : anchorsOf([...anchored.namespaces], [anchored.selector]),
    readsNamespaces: terms.some(
      ({ namespaceSelector }) => namespaceSelector !== undefined && !isEverything(namespaceSelector),
    ),
    selects: (other) => terms.every((term) => termSelects(term, other, labelsOf)),
  };
}

function anchorsOf(namespaces: readonly string[], selectors: readonly LabelSelector[]): string[] | undefined {
  for (const { requirements } of selectors) {
    const equality = requirements.find(({ operator }) => operator === '=' || operator === 'in');
    if (equality === undefined) continue;
    return namespaces.flatMap((namespace) => equality.values.map((value) => anchorOf(namespace, equality.key, value)));
  }
  return undefined;
}

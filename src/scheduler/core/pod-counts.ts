/**
 * Counts of placed pods by node and topology domain. Each change of a pod updates the counts, so that the cost of a
 * decision does not grow with the number of placed pods. `test/scheduler/core/pod-counts.test.ts` compares them with a
 * full recount.
 */

import type { AffinityTerm, PlacedPodTerm, PodInfo } from '../../api/podspec/scheduling/pod-info.ts';
import type { NodeInfo } from './node-info.ts';
import { anchorOf, type PodSelection } from './pod-selection.ts';

/** Counts of the pods of one selection. */
export interface SelectedPods {
  on(node: NodeInfo): number;
  /** Number of pods on all nodes whose label `topologyKey` has this value. */
  inDomain(topologyKey: string, value: string): number;
  /** Number of pods on all nodes that have the label `topologyKey`. */
  withKey(topologyKey: string): number;
}

/** Placed pods that declare the same affinity term. */
export interface TermGroup {
  readonly kind: PlacedPodTerm['kind'];
  readonly weight: number;
  readonly term: AffinityTerm;
  inDomain(value: string): number;
}

/** Counts that filters and scorers read. */
export interface PodCounts {
  selected(selection: PodSelection): SelectedPods;
  groups(): Iterable<TermGroup>;
  /** Number of pods that use a claim (`<namespace>/<name>`). */
  usersOf(claim: string): number;
}

/**
 * Maximum number of cached selections. The least recently used ones are removed, and counted again when they are used.
 */
const MAX_SELECTIONS = 4_096;

class NodePodCounts implements SelectedPods {
  readonly #nodes: ReadonlyMap<string, NodeInfo>;
  readonly #onNode = new Map<string, number>();
  readonly #domains = new Map<string, { readonly counts: Map<string, number>; total: number }>();

  constructor(nodes: ReadonlyMap<string, NodeInfo>) {
    this.#nodes = nodes;
  }

  get isEmpty(): boolean {
    return this.#onNode.size === 0;
  }

  change(node: NodeInfo, by: 1 | -1): void {
    bump(this.#onNode, node.name, by);
    for (const [key, domain] of this.#domains) {
      const value = node.label(key);
      if (value === undefined) continue;
      bump(domain.counts, value, by);
      domain.total += by;
    }
  }

  on(node: NodeInfo): number {
    return this.#onNode.get(node.name) ?? 0;
  }

  inDomain(topologyKey: string, value: string): number {
    return this.#domain(topologyKey).counts.get(value) ?? 0;
  }

  withKey(topologyKey: string): number {
    return this.#domain(topologyKey).total;
  }

  #domain(key: string): { readonly counts: ReadonlyMap<string, number>; readonly total: number } {
    const known = this.#domains.get(key);
    if (known !== undefined) return known;
    const domain = { counts: new Map<string, number>(), total: 0 };
    for (const [name, count] of this.#onNode) {
      const value = this.#nodes.get(name)?.label(key);
      if (value === undefined) continue;
      bump(domain.counts, value, count);
      domain.total += count;
    }
    this.#domains.set(key, domain);
    return domain;
  }
}

interface Counter {
  readonly selection: PodSelection;
  readonly counts: NodePodCounts;
}

interface Group {
  readonly existing: PlacedPodTerm;
  readonly counts: NodePodCounts;
}

interface Placed {
  readonly pod: PodInfo;
  readonly node: NodeInfo;
}

export class IncrementalPodCounts implements PodCounts {
  readonly #nodes: ReadonlyMap<string, NodeInfo>;
  readonly #placed = new Map<string, Placed>();
  readonly #byAnchor = new Map<string, Set<Placed>>();
  /** Counts by key of the selection. The least recently used ones come first. */
  readonly #counters = new Map<string, Counter>();
  readonly #anchored = new Map<string, Set<Counter>>();
  readonly #loose = new Set<Counter>();
  readonly #groups = new Map<string, Group>();
  readonly #claims = new Map<string, number>();

  constructor(nodes: ReadonlyMap<string, NodeInfo>) {
    this.#nodes = nodes;
  }

  add(pod: PodInfo, node: NodeInfo): void {
    this.remove(pod.uid);
    const placed = { pod, node };
    this.#placed.set(pod.uid, placed);
    for (const anchor of anchorsOfPod(pod)) setOf(this.#byAnchor, anchor).add(placed);
    this.#change(placed, 1);
  }

  remove(uid: string): void {
    const placed = this.#placed.get(uid);
    if (placed === undefined) return;
    this.#change(placed, -1);
    this.#placed.delete(uid);
    for (const anchor of anchorsOfPod(placed.pod)) dropFrom(this.#byAnchor, anchor, placed);
  }

  /** Removes the counts of selections that depend on labels of namespaces. Called after these labels have changed. */
  forgetNamespaces(): void {
    for (const counter of [...this.#counters.values()]) if (counter.selection.readsNamespaces) this.#drop(counter);
  }

  selected(selection: PodSelection): SelectedPods {
    const known = this.#counters.get(selection.key);
    if (known !== undefined) {
      this.#counters.delete(selection.key);
      this.#counters.set(selection.key, known);
      return known.counts;
    }
    return this.#count(selection);
  }

  *groups(): Iterable<TermGroup> {
    for (const { existing, counts } of this.#groups.values()) {
      yield {
        kind: existing.kind,
        weight: existing.weight,
        term: existing.term,
        inDomain: (value) => counts.inDomain(existing.term.topologyKey, value),
      };
    }
  }

  usersOf(claim: string): number {
    return this.#claims.get(claim) ?? 0;
  }

  #count(selection: PodSelection): NodePodCounts {
    const counts = new NodePodCounts(this.#nodes);
    const candidates =
      selection.anchors === undefined ? [this.#placed.values()] : this.#anchoredPods(selection.anchors);
    const seen = new Set<Placed>();
    for (const placed of candidates.flatMap((each) => [...each])) {
      if (seen.has(placed) || !selection.selects(placed.pod)) continue;
      seen.add(placed);
      counts.change(placed.node, 1);
    }
    const counter = { selection, counts };
    this.#counters.set(selection.key, counter);
    if (selection.anchors === undefined) this.#loose.add(counter);
    for (const anchor of selection.anchors ?? []) setOf(this.#anchored, anchor).add(counter);
    const [oldest] = this.#counters.values();
    if (this.#counters.size > MAX_SELECTIONS && oldest !== undefined) this.#drop(oldest);
    return counts;
  }

  #anchoredPods(anchors: readonly string[]): Iterable<Placed>[] {
    return anchors.map((anchor) => this.#byAnchor.get(anchor) ?? []);
  }

  #drop(counter: Counter): void {
    this.#counters.delete(counter.selection.key);
    this.#loose.delete(counter);
    for (const anchor of counter.selection.anchors ?? []) dropFrom(this.#anchored, anchor, counter);
  }

  #change({ pod, node }: Placed, by: 1 | -1): void {
    for (const counter of this.#countersOf(pod)) if (counter.selection.selects(pod)) counter.counts.change(node, by);
    for (const existing of pod.existingTerms) {
      let group = this.#groups.get(existing.key);
      if (group === undefined) {
        group = { existing, counts: new NodePodCounts(this.#nodes) };
        this.#groups.set(existing.key, group);
      }
      group.counts.change(node, by);
      if (group.counts.isEmpty) this.#groups.delete(existing.key);
    }
    for (const claim of pod.claims) bump(this.#claims, claim, by);
  }

  #countersOf(pod: PodInfo): Set<Counter> {
    const counters = new Set(this.#loose);
    for (const anchor of anchorsOfPod(pod)) for (const each of this.#anchored.get(anchor) ?? []) counters.add(each);
    return counters;
  }
}

/** Returns the counts as if the node `original` had the pods of `trial`. */
export function countsWith(base: PodCounts, original: NodeInfo, trial: NodeInfo): PodCounts {
  const removed = [...original.pods.values()].filter(({ uid }) => !trial.pods.has(uid));
  const added = [...trial.pods.values()].filter(({ uid }) => !original.pods.has(uid));
  const difference = (counts: (pod: PodInfo) => boolean): number =>
    added.filter(counts).length - removed.filter(counts).length;
  return {
    selected: (selection) => {
      const pods = base.selected(selection);
      const by = difference((pod) => selection.selects(pod));
      return {
        on: (node) => pods.on(node) + (node.name === trial.name ? by : 0),
        inDomain: (key, value) => pods.inDomain(key, value) + (trial.label(key) === value ? by : 0),
        withKey: (key) => pods.withKey(key) + (trial.label(key) === undefined ? 0 : by),
      };
    },
    *groups() {
      const bases = [...base.groups()];
      const terms = new Map([...removed, ...added].flatMap((pod) => pod.existingTerms.map((term) => [term.key, term])));
      for (const group of bases) {
        const { kind, weight, term } = group;
        const same = [...terms.values()].find((each) => isSame(each, group));
        if (same === undefined) {
          yield group;
          continue;
        }
        terms.delete(same.key);
        const by = difference((pod) => pod.existingTerms.some(({ key }) => key === same.key));
        const inDomain = (value: string) => group.inDomain(value) + (trial.label(term.topologyKey) === value ? by : 0);
        yield { kind, weight, term, inDomain };
      }
      for (const { key, kind, weight, term } of terms.values()) {
        const by = difference((pod) => pod.existingTerms.some((each) => each.key === key));
        yield { kind, weight, term, inDomain: (value) => (trial.label(term.topologyKey) === value ? by : 0) };
      }
    },
    usersOf: (claim) => base.usersOf(claim) + difference((pod) => pod.claims.includes(claim)),
  };
}

function isSame(existing: PlacedPodTerm, group: TermGroup): boolean {
  return existing.kind === group.kind && existing.weight === group.weight && existing.term.key === group.term.key;
}

function anchorsOfPod({ namespace, pod }: PodInfo): string[] {
  return Object.entries(pod.metadata?.labels ?? {}).map(([key, value]) => anchorOf(namespace, key, value));
}

function bump(counts: Map<string, number>, key: string, by: number): void {
  const count = (counts.get(key) ?? 0) + by;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}

function setOf<T>(sets: Map<string, Set<T>>, key: string): Set<T> {
  let set = sets.get(key);
  if (set === undefined) {
    set = new Set();
    sets.set(key, set);
  }
  return set;
}

function dropFrom<T>(sets: Map<string, Set<T>>, key: string, value: T): void {
  const set = sets.get(key);
  set?.delete(value);
  if (set?.size === 0) sets.delete(key);
}

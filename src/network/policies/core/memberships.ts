/**
 * Pods matched by peer selectors, and ports matched by named ports, updated as pods and namespaces change. Only the
 * selectors used by rules of this node are tracked.
 */
import { type Labels, matchesLabels } from '../../../base/selector.ts';
import type { Family, NamedPort, PodSelection, PolicyPod } from './compile.ts';
import { ElementSet } from './element-set.ts';

export interface TrackedSet {
  /** Unique in the table and never reused. It contains no text from users. */
  readonly name: string;
  readonly type: string;
  readonly content: ElementSet;
}

/** A selection or named port that rules refer to. */
export interface Tracked {
  readonly sets: Readonly<Record<Family, TrackedSet>>;
  /** The namespace of the selection; undefined if pods of every namespace are checked. */
  readonly namespace: string | undefined;
  /** Elements by pod key. */
  readonly members: Map<string, readonly Element[]>;
  elementsOf(pod: PolicyPod): readonly Element[];
  used: boolean;
  dropped: boolean;
}

interface Element {
  readonly family: Family;
  readonly text: string;
}

const ADDRESS_TYPES: Readonly<Record<Family, string>> = { 4: 'ipv4_addr', 6: 'ipv6_addr' };
const familyOf = (address: string): Family => (address.includes(':') ? 6 : 4);

export class Memberships {
  readonly #pods: ReadonlyMap<string, PolicyPod>;
  readonly #namespaces: ReadonlyMap<string, Labels>;
  readonly #podsByNamespace = new Map<string, Set<string>>();
  readonly #tracked = new Map<string, Tracked>();
  #numbers = 0;
  #collected = new Set<Tracked>();

  /** The caller owns both maps and reports each change after making it. */
  constructor(pods: ReadonlyMap<string, PolicyPod>, namespaces: ReadonlyMap<string, Labels>) {
    this.#pods = pods;
    this.#namespaces = namespaces;
  }

  podChanged(key: string, namespace: string): void {
    const inNamespace = this.#podsByNamespace.get(namespace) ?? new Set();
    this.#podsByNamespace.set(namespace, inNamespace);
    const pod = this.#pods.get(key);
    if (pod === undefined) inNamespace.delete(key);
    else inNamespace.add(key);
    if (inNamespace.size === 0) this.#podsByNamespace.delete(namespace);
    for (const tracked of this.#tracked.values()) {
      if (tracked.namespace === undefined || tracked.namespace === namespace) update(tracked, key, pod);
    }
  }

  namespaceChanged(namespace: string): void {
    for (const tracked of this.#tracked.values()) {
      if (tracked.namespace !== undefined) continue;
      for (const key of this.#podsByNamespace.get(namespace) ?? []) update(tracked, key, this.#pods.get(key));
    }
  }

  podsOf(namespace: string): Iterable<string> {
    return this.#podsByNamespace.get(namespace) ?? [];
  }

  /** Marks the set as used, and creates it if it does not exist. */
  selection(selection: PodSelection, family: Family): string {
    const { namespace, namespaceSelector, podSelector } = selection;
    return this.#use(`pods ${selection.id}`, family, namespace, ADDRESS_TYPES, (pod) => {
      const labels = this.#namespaces.get(pod.namespace);
      const isIn =
        namespace === undefined
          ? labels !== undefined && matchesLabels(namespaceSelector, labels)
          : pod.namespace === namespace;
      if (!isIn || !matchesLabels(podSelector, pod.labels)) return [];
      return pod.ips.map((text) => ({ family: familyOf(text), text }));
    });
  }

  port({ protocol, name }: NamedPort, family: Family): string {
    const types = {
      4: 'ipv4_addr . inet_proto . inet_service',
      6: 'ipv6_addr . inet_proto . inet_service',
    };
    return this.#use(`port ${protocol} ${name}`, family, undefined, types, (pod) => {
      const found = pod.ports.filter((each) => each.name === name && each.protocol === protocol);
      return pod.ips.flatMap((ip) =>
        found.map(({ port }) => ({ family: familyOf(ip), text: `${ip} . ${protocol} . ${port}` })),
      );
    });
  }

  /** Starts a new round of marks, which `dropUnused` ends. */
  unmark(): void {
    for (const tracked of this.#tracked.values()) tracked.used = false;
  }

  /** Calls `make` and returns its result with the sets that it used. */
  collect<T>(make: () => T): { readonly made: T; readonly uses: ReadonlySet<Tracked> } {
    this.#collected = new Set();
    return { made: make(), uses: this.#collected };
  }

  /** Marks sets returned by an earlier `collect`. Returns false if one of them was dropped. */
  mark(uses: ReadonlySet<Tracked>): boolean {
    for (const tracked of uses) {
      if (tracked.dropped) return false;
      tracked.used = true;
    }
    return true;
  }

  /** Drops the sets that were not used since `unmark`. */
  dropUnused(): void {
    for (const [id, tracked] of this.#tracked) {
      if (tracked.used) continue;
      tracked.dropped = true;
      this.#tracked.delete(id);
    }
  }

  sets(): TrackedSet[] {
    return [...this.#tracked.values()].flatMap(({ sets }) => [sets[4], sets[6]]);
  }

  #use(
    id: string,
    family: Family,
    namespace: string | undefined,
    types: Readonly<Record<Family, string>>,
    elementsOf: Tracked['elementsOf'],
  ): string {
    let tracked = this.#tracked.get(id);
    if (tracked === undefined) {
      const number = ++this.#numbers;
      const set = (each: Family): TrackedSet => ({
        name: `s${number}_${each}`,
        type: types[each],
        content: new ElementSet(),
      });
      tracked = {
        sets: { 4: set(4), 6: set(6) },
        namespace,
        members: new Map(),
        elementsOf,
        used: true,
        dropped: false,
      };
      this.#tracked.set(id, tracked);
      const candidates = namespace === undefined ? this.#pods.keys() : this.podsOf(namespace);
      for (const key of candidates) update(tracked, key, this.#pods.get(key));
    }
    tracked.used = true;
    this.#collected.add(tracked);
    return tracked.sets[family].name;
  }
}

function update(tracked: Tracked, key: string, pod: PolicyPod | undefined): void {
  const before = tracked.members.get(key) ?? [];
  const after = pod === undefined ? [] : tracked.elementsOf(pod);
  if (before.length === 0 && after.length === 0) return;
  // Additions come first, so that the count of an unchanged element never reaches zero.
  for (const { family, text } of after) tracked.sets[family].content.add(text);
  for (const { family, text } of before) tracked.sets[family].content.remove(text);
  if (after.length === 0) tracked.members.delete(key);
  else tracked.members.set(key, after);
}

/**
 * Pods matched by peer selectors, and ports matched by named ports, updated as pods and namespaces change. Only the
 * selectors used by rules of this node are tracked. One policy can have thousands of selectors that match the pods of
 * all namespaces, so changes are only recorded, and selectors are matched in steps.
 */
import { BoundedMap } from '../../../base/bounded-map.ts';
import type { Steps } from '../../../base/concurrency/steps.ts';
import { type Labels, matchesLabels } from '../../../base/selector.ts';
import type { Family, NamedPort, PodSelection, PolicyPod } from './compile.ts';
import { ElementSet } from './element-set.ts';

export interface TrackedSet {
  /** Name of the nft set. It is unique in the table, is never reused, and contains no text from users. */
  readonly name: string;
  readonly type: string;
  readonly content: ElementSet;
}

/** A selection or named port that rules refer to. */
export interface TrackedSelection {
  readonly sets: Readonly<Record<Family, TrackedSet>>;
  /** The selected pods; undefined for a named port. */
  readonly selection: PodSelection | undefined;
  /** `protocol name` of a named port, otherwise empty. */
  readonly port: string;
  /** Elements by pod key. */
  readonly members: Map<string, readonly Element[]>;
  /** Number of elements of all members. */
  size: number;
  /** Whether all existing pods have been matched for the set. Later changes of pods then update the set. */
  isFilled: boolean;
  used: boolean;
  dropped: boolean;
}

interface Element {
  readonly family: Family;
  readonly text: string;
}

const ADDRESS_TYPES: Readonly<Record<Family, string>> = { 4: 'ipv4_addr', 6: 'ipv6_addr' };
const PORT_TYPES: Readonly<Record<Family, string>> = {
  4: 'ipv4_addr . inet_proto . inet_service',
  6: 'ipv6_addr . inet_proto . inet_service',
};
/** Maximum number of selector requirements that are matched in one step. */
const STEP = 250;
/** Maximum number of namespace selectors whose matching namespaces are cached while sets are filled. */
const MAX_KEPT = 100;
const NO_ELEMENTS: readonly Element[] = [];
const NO_PORTS: ReadonlyMap<string, readonly number[]> = new Map();

const familyOf = (address: string): Family => (address.includes(':') ? 6 : 4);

export class Memberships {
  readonly #pods: ReadonlyMap<string, PolicyPod>;
  readonly #namespaces: ReadonlyMap<string, Labels>;
  readonly #podsByNamespace = new Map<string, Set<string>>();
  readonly #podsByPort = new Map<string, Set<string>>();
  /** Named ports by pod key, as the sets contain them. */
  readonly #portsByPod = new Map<string, ReadonlyMap<string, readonly number[]>>();
  readonly #addresses = new WeakMap<PolicyPod, readonly Element[]>();
  readonly #tracked = new Map<string, TrackedSelection>();
  /** Selections by their namespace; undefined if pods of every namespace are matched. */
  readonly #selections = new Map<string | undefined, Set<TrackedSelection>>();
  /** Namespaces of the changed pods, by pod key. */
  readonly #changed = new Map<string, string>();
  #matching = new BoundedMap<string, readonly string[]>(MAX_KEPT);
  #numbers = 0;
  #size = 0;
  #collected = new Set<TrackedSelection>();

  /** The caller owns and changes both maps. It reports each change after making it. */
  constructor(pods: ReadonlyMap<string, PolicyPod>, namespaces: ReadonlyMap<string, Labels>) {
    this.#pods = pods;
    this.#namespaces = namespaces;
  }

  /** Number of elements of all sets. */
  get size(): number {
    return this.#size;
  }

  podChanged(key: string, namespace: string): void {
    change(this.#podsByNamespace, namespace, key, this.#pods.has(key) ? 'add' : 'remove');
    this.#changed.set(key, namespace);
  }

  namespaceChanged(namespace: string): void {
    for (const key of this.podsOf(namespace)) this.#changed.set(key, namespace);
  }

  podsOf(namespace: string): Iterable<string> {
    return this.#podsByNamespace.get(namespace) ?? [];
  }

  /**
   * Matches the changed pods. Stops and returns false if the sets have more than `maxSize` elements and pods remain.
   */
  *update(maxSize: number): Steps<boolean> {
    let work = 0;
    for (const [key, namespace] of this.#changed) {
      const pod = this.#pods.get(key);
      for (const tracked of this.#portsChanged(key, pod)) {
        this.#replace(tracked, key, this.#elementsOf(tracked, pod));
        if (++work % STEP === 0) yield;
      }
      for (const group of [undefined, namespace]) {
        for (const tracked of this.#selections.get(group) ?? []) {
          if (tracked.isFilled) this.#replace(tracked, key, this.#elementsOf(tracked, pod));
          work += costOf(tracked);
          if (work < STEP) continue;
          work = 0;
          yield;
        }
      }
      this.#changed.delete(key);
      if (this.#size > maxSize) return this.#changed.size === 0;
    }
    return true;
  }

  /** Matches all pods if the set is new. Returns false if the set has more than `maxSize` elements. */
  *fill(tracked: TrackedSelection, maxSize: number): Steps<boolean> {
    if (tracked.isFilled) return tracked.size <= maxSize;
    let work = 0;
    for (const keys of yield* this.#candidates(tracked)) {
      for (const key of keys) {
        this.#replace(tracked, key, this.#elementsOf(tracked, this.#pods.get(key)));
        if (tracked.size > maxSize) return false;
        work += costOf(tracked);
        if (work < STEP) continue;
        work = 0;
        yield;
      }
    }
    yield;
    tracked.isFilled = true;
    return true;
  }

  /** Returns the name of the set for a selection. Creates the set if it does not exist. */
  selection(selection: PodSelection, family: Family): string {
    return this.#use(`pods ${selection.id}`, family, ADDRESS_TYPES, selection, '');
  }

  port({ protocol, name }: NamedPort, family: Family): string {
    return this.#use(`port ${protocol} ${name}`, family, PORT_TYPES, undefined, `${protocol} ${name}`);
  }

  /** Removes the marks of all sets. `mark` then marks the used sets, and `dropUnused` drops the others. */
  unmark(): void {
    this.#matching = new BoundedMap(MAX_KEPT);
    for (const tracked of this.#tracked.values()) tracked.used = false;
  }

  /** Runs `steps` and returns their result with the sets that they used. */
  *collect<T>(steps: Steps<T>): Steps<{ readonly made: T; readonly uses: ReadonlySet<TrackedSelection> }> {
    const uses = new Set<TrackedSelection>();
    this.#collected = uses;
    return { made: yield* steps, uses };
  }

  isDropped(uses: ReadonlySet<TrackedSelection>): boolean {
    for (const { dropped } of uses) if (dropped) return true;
    return false;
  }

  /** Marks sets returned by `collect` as used. */
  mark(uses: ReadonlySet<TrackedSelection>): void {
    for (const tracked of uses) tracked.used = true;
  }

  /** Drops the sets that were not used since `unmark`. */
  dropUnused(): void {
    for (const [id, tracked] of this.#tracked) {
      if (tracked.used) continue;
      tracked.dropped = true;
      this.#size -= tracked.size;
      this.#tracked.delete(id);
      const { selection } = tracked;
      if (selection !== undefined) change(this.#selections, selection.namespace, tracked, 'remove');
    }
  }

  sets(): TrackedSet[] {
    return [...this.#tracked.values()].flatMap(({ sets }) => [sets[4], sets[6]]);
  }

  #use(
    id: string,
    family: Family,
    types: Readonly<Record<Family, string>>,
    selection: PodSelection | undefined,
    port: string,
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
        selection,
        port,
        members: new Map(),
        size: 0,
        isFilled: false,
        used: false,
        dropped: false,
      };
      this.#tracked.set(id, tracked);
      if (selection !== undefined) change(this.#selections, selection.namespace, tracked, 'add');
    }
    this.#collected.add(tracked);
    return tracked.sets[family].name;
  }

  /** Keys of the pods that may be members. */
  *#candidates({ selection, port }: TrackedSelection): Steps<Iterable<string>[]> {
    if (selection === undefined) return [this.#podsByPort.get(port) ?? []];
    if (selection.namespace !== undefined) return [this.podsOf(selection.namespace)];
    const found = this.#matching.get(selection.namespaceText) ?? (yield* this.#namespacesOf(selection));
    this.#matching.set(selection.namespaceText, found);
    return found.map((namespace) => this.podsOf(namespace));
  }

  *#namespacesOf({ namespaceSelector }: PodSelection): Steps<string[]> {
    const found: string[] = [];
    for (const namespace of this.#podsByNamespace.keys()) {
      const labels = this.#namespaces.get(namespace);
      if (labels !== undefined && matchesLabels(namespaceSelector, labels)) found.push(namespace);
      yield;
    }
    return found;
  }

  #elementsOf({ selection, port }: TrackedSelection, pod: PolicyPod | undefined): readonly Element[] {
    if (pod === undefined) return NO_ELEMENTS;
    if (selection === undefined) {
      const [protocol] = port.split(' ');
      const ports = this.#portsByPod.get(pod.key)?.get(port) ?? [];
      return pod.ips.flatMap((ip) =>
        ports.map((each) => ({ family: familyOf(ip), text: `${ip} . ${protocol} . ${each}` })),
      );
    }
    if (!matchesLabels(selection.podSelector, pod.labels)) return NO_ELEMENTS;
    if (selection.namespace === undefined) {
      const labels = this.#namespaces.get(pod.namespace);
      if (labels === undefined || !matchesLabels(selection.namespaceSelector, labels)) return NO_ELEMENTS;
    }
    // All selections of the pod share one list of elements.
    const elements = this.#addresses.get(pod) ?? pod.ips.map((text) => ({ family: familyOf(text), text }));
    this.#addresses.set(pod, elements);
    return elements;
  }

  /** Records the named ports of a pod. Returns the sets of its former and present ports. */
  #portsChanged(key: string, pod: PolicyPod | undefined): TrackedSelection[] {
    const before = this.#portsByPod.get(key) ?? NO_PORTS;
    const after = new Map<string, number[]>();
    for (const { protocol, name, port } of pod?.ports ?? []) {
      const ports = after.get(`${protocol} ${name}`);
      if (ports === undefined) after.set(`${protocol} ${name}`, [port]);
      else ports.push(port);
    }
    for (const id of before.keys()) if (!after.has(id)) change(this.#podsByPort, id, key, 'remove');
    for (const id of after.keys()) change(this.#podsByPort, id, key, 'add');
    if (after.size === 0) this.#portsByPod.delete(key);
    else this.#portsByPod.set(key, after);
    const ids = [...new Set([...before.keys(), ...after.keys()])];
    return ids.flatMap((id) => this.#tracked.get(`port ${id}`) ?? []).filter(({ isFilled }) => isFilled);
  }

  #replace(tracked: TrackedSelection, key: string, after: readonly Element[]): void {
    const before = tracked.members.get(key) ?? NO_ELEMENTS;
    if (before.length === 0 && after.length === 0) return;
    // Additions come first, so that the count of an unchanged element never reaches zero.
    for (const { family, text } of after) tracked.sets[family].content.add(text);
    for (const { family, text } of before) tracked.sets[family].content.remove(text);
    if (after.length === 0) tracked.members.delete(key);
    else tracked.members.set(key, after);
    tracked.size += after.length - before.length;
    this.#size += after.length - before.length;
  }
}

function costOf({ selection }: TrackedSelection): number {
  if (selection === undefined) return 1;
  return 1 + selection.podSelector.requirements.length + selection.namespaceSelector.requirements.length;
}

/** Adds a value to the set of a key, or removes it. */
function change<K, V>(sets: Map<K, Set<V>>, key: K, value: V, operation: 'add' | 'remove'): void {
  const found = sets.get(key);
  if (operation === 'remove') {
    found?.delete(value);
    if (found?.size === 0) sets.delete(key);
  } else if (found === undefined) sets.set(key, new Set([value]));
  else found.add(value);
}

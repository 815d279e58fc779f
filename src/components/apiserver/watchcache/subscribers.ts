/** Who watches a kind, by the part of it that concerns them: what a change costs grows with those whom it concerns, not with all. */
import type { FieldReaders } from './cached-object.ts';
import { type CacheEvent, EventBatch } from './event-window.ts';

/** The part of a kind that a subscriber is told about: all of it when nothing is given. It may be told about more. */
export interface Concern {
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  /** A selectable field of the kind and the value that objects must have before or after the change; counts when no name is given. */
  readonly field?: { readonly name: string; readonly value: string } | undefined;
}

export interface KindSubscriber {
  readonly concern?: Concern;
  /** In order, without gaps in what concerns it. Must not throw and must not wait. */
  deliver(batch: EventBatch): void;
  /** The cache lost its place in the store's history and was loaded anew: watchers start over. */
  reset(): void;
}

type Group = Set<KindSubscriber>;

export class Subscribers {
  readonly #fieldReaders: FieldReaders;
  readonly #ofAll: Group = new Set();
  /** By what an object must have: one map for each way to say it, so that ways that nobody uses cost nothing. */
  readonly #ofNamespace = new Map<string, Group>();
  readonly #ofName = new Map<string, Group>();
  readonly #ofObject = new Map<string, Group>();
  /** By field, then by value. */
  readonly #ofField = new Map<string, Map<string, Group>>();
  #size = 0;

  constructor(fieldReaders: FieldReaders) {
    this.#fieldReaders = fieldReaders;
  }

  get size(): number {
    return this.#size;
  }

  add(subscriber: KindSubscriber): void {
    const { groups, key } = this.#placeOf(subscriber.concern ?? {});
    const group = groups === undefined ? this.#ofAll : groupIn(groups, key);
    group.add(subscriber);
    this.#size += 1;
  }

  /** Does nothing for one that is not there. */
  remove(subscriber: KindSubscriber): void {
    const { groups, key } = this.#placeOf(subscriber.concern ?? {});
    const group = groups === undefined ? this.#ofAll : groups.get(key);
    if (group?.delete(subscriber) !== true) return;
    this.#size -= 1;
    if (group.size === 0) groups?.delete(key);
  }

  #placeOf({ namespace, name, field }: Concern): {
    readonly groups: Map<string, Group> | undefined;
    readonly key: string;
  } {
    if (name !== undefined)
      return namespace === undefined
        ? { groups: this.#ofName, key: name }
        : { groups: this.#ofObject, key: `${namespace}/${name}` };
    if (field !== undefined && Object.hasOwn(this.#fieldReaders, field.name)) {
      let values = this.#ofField.get(field.name);
      if (values === undefined) {
        values = new Map();
        this.#ofField.set(field.name, values);
      }
      return { groups: values, key: field.value };
    }
    return namespace === undefined ? { groups: undefined, key: '' } : { groups: this.#ofNamespace, key: namespace };
  }

  /** Tells everybody whom an event concerns, each once and in the order of the events. */
  deliver(batch: EventBatch): void {
    for (const subscriber of this.#ofAll) subscriber.deliver(batch);
    const told = new Map<Group, CacheEvent[]>();
    for (const event of batch.events) this.#gather(event, told);
    for (const [group, events] of told) {
      const part = events.length === batch.events.length ? batch : new EventBatch(events, batch.revision);
      for (const subscriber of group) subscriber.deliver(part);
    }
  }

  #gather(event: CacheEvent, told: Map<Group, CacheEvent[]>): void {
    const { object, previous } = event;
    const { namespace, name } = object;
    if (this.#ofNamespace.size > 0) tell(this.#ofNamespace.get(namespace), event, told);
    if (this.#ofName.size > 0) tell(this.#ofName.get(name), event, told);
    if (this.#ofObject.size > 0) tell(this.#ofObject.get(`${namespace}/${name}`), event, told);
    for (const [field, values] of this.#ofField) {
      if (values.size === 0) continue;
      const now = object.field(field, this.#fieldReaders);
      tell(values.get(now), event, told);
      const before = previous?.field(field, this.#fieldReaders);
      if (before !== undefined && before !== now) tell(values.get(before), event, told);
    }
  }

  /** Everybody is to start over, and is forgotten. */
  reset(): void {
    const groups = [
      this.#ofAll,
      ...[this.#ofNamespace, this.#ofName, this.#ofObject, ...this.#ofField.values()].flatMap((each) => [
        ...each.values(),
      ]),
    ];
    const everybody = groups.flatMap((group) => [...group]);
    for (const group of groups) group.clear();
    for (const each of [this.#ofNamespace, this.#ofName, this.#ofObject, this.#ofField]) each.clear();
    this.#size = 0;
    for (const subscriber of everybody) subscriber.reset();
  }
}

function groupIn(groups: Map<string, Group>, key: string): Group {
  let group = groups.get(key);
  if (group === undefined) {
    group = new Set();
    groups.set(key, group);
  }
  return group;
}

function tell(group: Group | undefined, event: CacheEvent, told: Map<Group, CacheEvent[]>): void {
  if (group === undefined) return;
  const events = told.get(group);
  if (events === undefined) told.set(group, [event]);
  else events.push(event);
}

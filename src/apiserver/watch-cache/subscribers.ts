/**
 * Subscribers of a kind, indexed by the part of the kind that they need, so that the cost of an event depends only on
 * the interested subscribers.
 */
import type { FieldReaders } from './cached-object.ts';
import { type CacheEvent, EventBatch } from './event-window.ts';

/**
 * The part of a kind that a subscriber needs. An empty scope is the whole kind. A subscriber may receive events outside
 * its scope too.
 */
export interface SubscriptionScope {
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  /** Selectable field and the value that an object must have before or after the change. Ignored if a name is given. */
  readonly field?: { readonly name: string; readonly value: string } | undefined;
}

export interface KindSubscriber {
  readonly scope?: SubscriptionScope;
  /** Receives events in order, without gaps within the scope. Must neither throw nor block. */
  deliver(batch: EventBatch): void;
  /** Called after the cache was reloaded because it missed events. Watches must start again. */
  reset(): void;
}

type Group = Set<KindSubscriber>;

export class Subscribers {
  readonly #fieldReaders: FieldReaders;
  readonly #ofAll: Group = new Set();
  /**
   * Subscribers by the criterion in their scope. There is one map per criterion, so that unused criteria cost nothing.
   */
  readonly #ofNamespace = new Map<string, Group>();
  readonly #ofName = new Map<string, Group>();
  readonly #ofObject = new Map<string, Group>();
  /** Subscribers by field, then by value. */
  readonly #ofField = new Map<string, Map<string, Group>>();
  #size = 0;

  constructor(fieldReaders: FieldReaders) {
    this.#fieldReaders = fieldReaders;
  }

  get size(): number {
    return this.#size;
  }

  add(subscriber: KindSubscriber): void {
    const { groups, key } = this.#placeOf(subscriber.scope ?? {});
    const group = groups === undefined ? this.#ofAll : groupIn(groups, key);
    group.add(subscriber);
    this.#size += 1;
  }

  /** Removes a subscriber. Does nothing if it is not registered. */
  remove(subscriber: KindSubscriber): void {
    const { groups, key } = this.#placeOf(subscriber.scope ?? {});
    const group = groups === undefined ? this.#ofAll : groups.get(key);
    if (group?.delete(subscriber) !== true) return;
    this.#size -= 1;
    if (group.size === 0) groups?.delete(key);
  }

  #placeOf({ namespace, name, field }: SubscriptionScope): {
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

  /** Delivers each event to the interested subscribers, once and in order. */
  deliver(batch: EventBatch): void {
    for (const subscriber of this.#ofAll) subscriber.deliver(batch);
    const collected = new Map<Group, CacheEvent[]>();
    for (const event of batch.events) this.#gather(event, collected);
    for (const [group, events] of collected) {
      const part = events.length === batch.events.length ? batch : new EventBatch(events, batch.revision);
      for (const subscriber of group) subscriber.deliver(part);
    }
  }

  #gather(event: CacheEvent, collected: Map<Group, CacheEvent[]>): void {
    const { object, previous } = event;
    const { namespace, name } = object;
    if (this.#ofNamespace.size > 0) collect(this.#ofNamespace.get(namespace), event, collected);
    if (this.#ofName.size > 0) collect(this.#ofName.get(name), event, collected);
    if (this.#ofObject.size > 0) collect(this.#ofObject.get(`${namespace}/${name}`), event, collected);
    for (const [field, values] of this.#ofField) {
      if (values.size === 0) continue;
      const now = object.field(field, this.#fieldReaders);
      collect(values.get(now), event, collected);
      const before = previous?.field(field, this.#fieldReaders);
      if (before !== undefined && before !== now) collect(values.get(before), event, collected);
    }
  }

  /** Resets and removes all subscribers. */
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

function collect(group: Group | undefined, event: CacheEvent, collected: Map<Group, CacheEvent[]>): void {
  if (group === undefined) return;
  const events = collected.get(group);
  if (events === undefined) collected.set(group, [event]);
  else events.push(event);
}

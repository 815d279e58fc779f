/**
 * Index of a kind's objects by the values of labels in selectors. The index of a label is built on first use. A write
 * only records its event; the next use of the index applies the recorded events. After too many writes the index is
 * rebuilt.
 */
import { setImmediate as pause } from 'node:timers/promises';
import type { LabelSelector } from '../../base/selector.ts';
import type { CachedObject } from './cached-object.ts';
import type { CacheEvent } from './event-window.ts';
import { boundsOf, byKey, lowerBound } from './key-order.ts';

/** Minimum number of objects for which the index is used. */
const WORTH_IT = 32;
/** Maximum number of indexed labels. The least recently used label is dropped. */
const MAX_LABELS = 8;
/** A label with more values than this is not indexed, because its index would be as large as the objects. */
const MAX_VALUES = 4096;
const MAX_NOTES = 1024;
/** Number of objects read between two pauses. Labels are parsed from an object's bytes on first use. */
const BATCH = 2000;

type ByValue = Map<string, CachedObject[]>;

const NOTHING: readonly CachedObject[] = [];

export class LabelIndex {
  /** Index of each label. Undefined: the label is not worth an index. */
  readonly #labels = new Map<string, ByValue | undefined>();
  /** Events since the last update of the index. */
  #notes: CacheEvent[] = [];

  note(event: CacheEvent): void {
    if (this.#labels.size === 0) return;
    if (this.#notes.length === MAX_NOTES) this.clear();
    else this.#notes.push(event);
  }

  clear(): void {
    this.#labels.clear();
    this.#notes = [];
  }

  /**
   * Superset of the objects that match `selector`, in key order. Undefined if the index cannot exclude any object.
   * `all` must be in key order.
   */
  candidates(
    selector: LabelSelector,
    namespace: string | undefined,
    all: readonly CachedObject[],
  ): readonly CachedObject[] | undefined {
    if (selector.nothing) return NOTHING;
    if (all.length < WORTH_IT) return undefined;
    this.#catchUp();
    for (const { key, operator, values } of selector.requirements) {
      if (operator !== '=' && operator !== 'in') continue;
      const index = this.#of(key, all);
      if (index === undefined) continue;
      const found = values.map((value) => within(index.get(value) ?? NOTHING, namespace));
      return found.length === 1 ? found[0] : found.flat().sort(byKey);
    }
    return undefined;
  }

  #of(label: string, all: readonly CachedObject[]): ByValue | undefined {
    const known = this.#labels.get(label);
    const has = this.#labels.has(label);
    if (has) this.#labels.delete(label);
    const index = has ? known : indexed(label, all);
    this.#labels.set(label, index);
    for (const oldest of this.#labels.keys()) {
      if (this.#labels.size <= MAX_LABELS) break;
      this.#labels.delete(oldest);
    }
    return index;
  }

  #catchUp(): void {
    const notes = this.#notes;
    if (notes.length === 0) return;
    this.#notes = [];
    for (const [label, index] of this.#labels) {
      if (index === undefined) continue;
      for (const event of notes) follow(index, label, event);
      if (index.size > MAX_VALUES) this.#labels.set(label, undefined);
    }
  }
}

function indexed(label: string, all: readonly CachedObject[]): ByValue | undefined {
  const index: ByValue = new Map();
  for (const object of all) {
    const value = labelOf(object, label);
    if (value === undefined) continue;
    const those = index.get(value);
    if (those !== undefined) those.push(object);
    else if (index.size === MAX_VALUES) return undefined;
    else index.set(value, [object]);
  }
  return index;
}

function follow(index: ByValue, label: string, { type, object, previous }: CacheEvent): void {
  const { namespace, name } = object;
  const before = previous === undefined ? undefined : labelOf(previous, label);
  const now = type === 'DELETED' ? undefined : labelOf(object, label);
  if (before !== undefined) {
    const those = index.get(before) ?? [];
    const at = lowerBound(those, namespace, name);
    if (before === now) {
      those[at] = object;
      return;
    }
    those.splice(at, 1);
    if (those.length === 0) index.delete(before);
  }
  if (now === undefined) return;
  const those = index.get(now);
  if (those === undefined) index.set(now, [object]);
  else those.splice(lowerBound(those, namespace, name), 0, object);
}

/** Objects of one namespace, as a copy, which later changes do not affect. */
function within(sorted: readonly CachedObject[], namespace: string | undefined): readonly CachedObject[] {
  return namespace === undefined ? sorted.slice() : sorted.slice(...boundsOf(sorted, namespace));
}

function labelOf(object: CachedObject, label: string): string | undefined {
  const labels = object.labels();
  return Object.hasOwn(labels, label) ? labels[label] : undefined;
}

/** Parses the labels of many objects in advance, with pauses. Undefined if there are few objects. */
export function readLabels(objects: readonly CachedObject[]): Promise<void> | undefined {
  return objects.length <= BATCH ? undefined : readInTurns(objects);
}

async function readInTurns(objects: readonly CachedObject[]): Promise<void> {
  let read = 0;
  for (const object of objects) {
    if (object.knowsLabels) continue;
    object.labels();
    read += 1;
    if (read % BATCH === 0) await pause();
  }
}

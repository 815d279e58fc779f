import { type KubeObject, objectKey } from '../../api/meta/object.ts';
import { assert } from '../../base/errors.ts';

type ValuesOf<T> = (object: T) => readonly string[];

interface Index<T> {
  readonly valuesOf: ValuesOf<T>;
  readonly keysByValue: Map<string, Set<string>>;
}

const NAMESPACE = '\0namespace';

/**
 * Objects by key, with secondary indexes. The time of an index lookup is proportional to the number of matching
 * objects.
 */
export class IndexedStore<T extends KubeObject> {
  readonly #objects = new Map<string, T>();
  readonly #indexes = new Map<string, Index<T>>();

  constructor() {
    this.addIndex(NAMESPACE, (object) => {
      const namespace = object.metadata?.namespace;
      return namespace === undefined ? [] : [namespace];
    });
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  keys(): IterableIterator<string> {
    return this.#objects.keys();
  }

  values(): IterableIterator<T> {
    return this.#objects.values();
  }

  list(namespace?: string): T[] {
    return namespace === undefined ? [...this.#objects.values()] : this.byIndex(NAMESPACE, namespace);
  }

  byIndex(name: string, value: string): T[] {
    const index = this.#indexes.get(name);
    assert(index !== undefined, `index ${name} does not exist`);
    const objects: T[] = [];
    for (const key of index.keysByValue.get(value) ?? []) {
      const object = this.#objects.get(key);
      if (object !== undefined) objects.push(object);
    }
    return objects;
  }

  addIndex(name: string, valuesOf: ValuesOf<T>): void {
    assert(!this.#indexes.has(name), `index ${name} exists already`);
    const index: Index<T> = { valuesOf, keysByValue: new Map() };
    this.#indexes.set(name, index);
    for (const [key, object] of this.#objects) insert(index, key, object);
  }

  /** Stores `object` and returns the object that it replaces. */
  set(object: T): T | undefined {
    const key = objectKey(object);
    const old = this.#objects.get(key);
    this.#objects.set(key, object);
    for (const index of this.#indexes.values()) {
      if (old !== undefined) remove(index, key, old);
      insert(index, key, object);
    }
    return old;
  }

  delete(key: string): T | undefined {
    const old = this.#objects.get(key);
    if (old === undefined) return undefined;
    this.#objects.delete(key);
    for (const index of this.#indexes.values()) remove(index, key, old);
    return old;
  }
}

function insert<T>(index: Index<T>, key: string, object: T): void {
  for (const value of index.valuesOf(object)) {
    const keys = index.keysByValue.get(value);
    if (keys === undefined) index.keysByValue.set(value, new Set([key]));
    else keys.add(key);
  }
}

function remove<T>(index: Index<T>, key: string, object: T): void {
  for (const value of index.valuesOf(object)) {
    const keys = index.keysByValue.get(value);
    if (keys === undefined) continue;
    keys.delete(key);
    if (keys.size === 0) index.keysByValue.delete(value);
  }
}

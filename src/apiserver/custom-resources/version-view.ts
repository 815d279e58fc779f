/**
 * Converts stored custom resources to one served version: pruned and defaulted by the current schema of the storage
 * version, converted, then pruned by the schema of the served version. Most objects are stored exactly as served; this
 * is determined once per object, on first read.
 */

import { setImmediate as pause } from 'node:timers/promises';
import type { JsonObject, KubeObject } from '../../api/meta/object.ts';
import type { KindDefinition } from '../../api/registry/definition.ts';
import { encodeObject } from '../storage/encode.ts';
import type { ObjectView } from '../storage/object-view.ts';
import { CachedObject, spliceRevision } from '../watch-cache/cached-object.ts';
import type { Converter } from './conversion.ts';

/** Number of objects processed between two pauses. */
const BATCH = 100;

export class VersionView implements ObjectView {
  readonly #definition: KindDefinition;
  readonly #apiVersion: string;
  readonly #storageVersion: string;
  readonly #converter: Converter;
  readonly #definitionOf: (apiVersion: string) => KindDefinition | undefined;
  /** Objects that are stored in a version other than the current storage version. */
  readonly #stale = new WeakSet<CachedObject>();
  readonly #seen = new WeakMap<CachedObject, CachedObject | Promise<CachedObject>>();

  /** `definitionOf` returns any version of the kind, served or not. */
  constructor(
    definition: KindDefinition,
    storageVersion: string,
    converter: Converter,
    definitionOf: (apiVersion: string) => KindDefinition | undefined,
  ) {
    this.#definitionOf = definitionOf;
    this.#definition = definition;
    this.#apiVersion = `${definition.group}/${definition.version}`;
    this.#storageVersion = `${definition.group}/${storageVersion}`;
    this.#converter = converter;
  }

  of(object: CachedObject): CachedObject | Promise<CachedObject> {
    const known = this.#seen.get(object);
    if (known !== undefined) return known;
    const document = this.#read(object);
    const documents = [document];
    const converted = this.#converted(documents);
    if (!(converted instanceof Promise))
      return this.#settle(object, converted[0] ?? document, { isConverted: converted !== documents });
    const pending = converted.then(([each]) => this.#settle(object, each ?? document, { isConverted: true }));
    this.#seen.set(object, pending);
    // Failures are not cached; the next read tries again.
    pending.catch(() => this.#seen.delete(object));
    return pending;
  }

  async ofAll(objects: readonly CachedObject[]): Promise<CachedObject[]> {
    const result: CachedObject[] = [];
    for (let start = 0; start < objects.length; start += BATCH) {
      const batch = objects.slice(start, start + BATCH);
      const unknown = batch.filter((object) => !this.#seen.has(object));
      if (unknown.length > 0) {
        if (start > 0) await pause();
        const documents = unknown.map((object) => this.#read(object));
        const converted = await this.#converted(documents);
        for (const [index, object] of unknown.entries()) {
          const document = converted[index];
          if (document !== undefined && !this.#seen.has(object))
            this.#settle(object, document, { isConverted: converted !== documents });
        }
      }
      for (const object of batch) result.push(await this.of(object));
    }
    return result;
  }

  #read(object: CachedObject): JsonObject {
    const stored = object.parse();
    const document = stored;
    if (stored.apiVersion !== this.#storageVersion) this.#stale.add(object);
    const definition = this.#definitionOf(stored.apiVersion ?? '');
    if (definition === undefined) return document;
    definition.custom?.coerce(document, true);
    // Objects of other API servers, and objects from before generations were introduced, have no generation.
    if ((stored.metadata?.generation ?? 0) === 0) stored.metadata = { ...stored.metadata, generation: 1 };
    definition.custom?.setStoredDefaults(document);
    return document;
  }

  #converted(documents: JsonObject[]): JsonObject[] | Promise<JsonObject[]> {
    if (documents.every((each) => each['apiVersion'] === this.#apiVersion)) return documents;
    return this.#converter.convert(documents, this.#apiVersion);
  }

  #settle(
    object: CachedObject,
    document: JsonObject,
    { isConverted }: { readonly isConverted: boolean },
  ): CachedObject {
    const shown = document as KubeObject;
    if (isConverted) this.#definition.custom?.coerce(document, true);
    const type = { apiVersion: this.#apiVersion, kind: this.#definition.kind };
    const bytes = spliceRevision(encodeObject(type, shown), object.revision, 'kept');
    const same = bytes.equals(object.bytes);
    const view = same
      ? object
      : new CachedObject(object.namespace, object.name, bytes, object.revision, object.createRevision);
    this.#seen.set(object, view);
    if (!same) this.#seen.set(view, view);
    if (this.#stale.has(object)) this.#stale.add(view);
    return view;
  }

  isStale(object: CachedObject): boolean {
    return this.#stale.has(object);
  }

  toStorage(object: KubeObject): KubeObject | Promise<KubeObject> {
    if (object.apiVersion === this.#storageVersion) return object;
    const converted = this.#converter.convert([object], this.#storageVersion);
    const only = (documents: JsonObject[]): KubeObject => (documents[0] ?? object) as KubeObject;
    return converted instanceof Promise ? converted.then(only) : only(converted);
  }
}

/**
 * Registry of the served custom kinds. It follows the definitions in the watch cache, so that all API servers serve the
 * same kinds. Schemas of a definition are parsed only when its kind is used, which saves memory.
 */
import type { CustomResourceDefinition } from '../../api/generated/apiextensions/v1.ts';
import { isConditionTrue } from '../../api/kinds/cluster/customresourcedefinitions/conditions.ts';
import { compareVersions } from '../../api/kinds/cluster/customresourcedefinitions/names.ts';
import { type CustomKindOptions, customKind } from '../../api/kinds/cluster/customresources/index.ts';
import type { JsonValue } from '../../api/meta/object.ts';
import { ApiError } from '../../api/meta/status.ts';
import type { KindDefinition } from '../../api/registry/definition.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { ChangingKinds, ServedKind } from '../pipeline/kinds.ts';
import type { CachedObject } from '../watch-cache/cached-object.ts';
import type { KindCache } from '../watch-cache/kind-cache.ts';
import type { WatchCache } from '../watch-cache/watch-cache.ts';
import { converterOf } from './conversion.ts';
import { VersionView } from './version-view.ts';
import type { WebhookCaller } from './webhook-converter.ts';

export interface CustomKindsDeps {
  readonly cache: WatchCache;
  readonly log: Log;
  readonly webhooks: WebhookCaller;
  readonly kindOptions: Pick<CustomKindOptions, 'compileRules'>;
  /**
   * Reports whether this server serves the version itself. As upstream, a definition cannot add kinds to this version.
   */
  isBuiltIn(apiVersion: string): boolean;
  /** Called when kinds were added or removed. */
  changed(): void;
}

interface Entry {
  /** Fingerprint of the definition; an unchanged text means unchanged kinds. */
  readonly text: string;
  readonly prefix: string;
  /** All versions in order of preference, including versions that are not served. */
  readonly versions: readonly ServedKind[];
  readonly served: ReadonlySet<ServedKind>;
  readonly storage: ServedKind | undefined;
  terminating: boolean;
}

function schemaIn(object: CachedObject, version: string): JsonValue | undefined {
  const { versions } = object.parse<CustomResourceDefinition>().spec;
  const schema = versions.find((each) => each.name === version)?.schema?.openAPIV3Schema;
  return schema;
}

/** Storage prefix of the custom resources, without `/registry/`. */
const prefixOf = (definition: CustomResourceDefinition): string =>
  `${definition.spec.group}/${definition.status?.acceptedNames?.plural || definition.spec.names.plural}`;

export class CustomKinds implements ChangingKinds {
  readonly #deps: CustomKindsDeps;
  /** Entries by the name of the definition. */
  readonly #entries = new Map<string, Entry>();
  readonly #byPath = new Map<string, ServedKind>();
  #all: readonly ServedKind[] | undefined;
  #generation = 0;
  #unsubscribe: (() => void) | undefined;

  constructor(deps: CustomKindsDeps) {
    this.#deps = deps;
  }

  /** Resolves when all currently defined kinds are served. */
  async start(): Promise<void> {
    const { cache } = this.#deps;
    const definitions = cache.kind(DEFINITIONS);
    const follow = (): void => {
      this.#unsubscribe = definitions.subscribe(
        {
          deliver: (batch) => {
            for (const event of batch.events) {
              if (event.type === 'DELETED') this.#forget(event.object.name);
              else void this.#update(event.object);
            }
          },
          // After a reload, compares the cache with the served kinds.
          reset: () =>
            queueMicrotask(() => {
              follow();
              this.#compare(definitions);
            }),
        },
        undefined,
        cache.revision,
      );
    };
    follow();
    await Promise.all(definitions.list(undefined).map((object) => this.#update(object)));
  }

  stop(): void {
    this.#unsubscribe?.();
  }

  #compare(definitions: KindCache): void {
    for (const name of [...this.#entries.keys()]) if (definitions.get('', name) === undefined) this.#forget(name);
    for (const object of definitions.list(undefined)) void this.#update(object);
  }

  get generation(): number {
    return this.#generation;
  }

  get all(): readonly ServedKind[] {
    this.#all ??= [...this.#entries.values()]
      .flatMap((entry) => entry.versions.filter((each) => entry.served.has(each)))
      .sort((a, b) => {
        if (a.group !== b.group) return a.group < b.group ? -1 : 1;
        return compareVersions(a.version, b.version);
      });
    return this.#all;
  }

  at(group: string, version: string, plural: string): ServedKind | undefined {
    return this.#byPath.get(`${group}/${version}/${plural}`);
  }

  /** Storage version of a definition's kind, whether it is served or not. Undefined if the kind is not established. */
  storageOf(name: string): ServedKind | undefined {
    return this.#entries.get(name)?.storage;
  }

  async #update(object: CachedObject): Promise<void> {
    const { cache, log } = this.#deps;
    try {
      const definition = object.parse<CustomResourceDefinition>();
      const terminating = definition.metadata?.deletionTimestamp !== undefined;
      const known = this.#entries.get(object.name);
      if (!isConditionTrue(definition, 'Established')) {
        if (known !== undefined && !terminating) this.#forget(object.name);
        return;
      }
      const uid = definition.metadata?.uid ?? '';
      // The generation changes with every change of the specification.
      const text = JSON.stringify([uid, definition.metadata?.generation, definition.status?.acceptedNames]);
      if (known?.text === text) {
        known.terminating = terminating;
        return;
      }
      const prefix = prefixOf(definition);
      const kindCache = await cache.addKind({
        prefix: `/registry/${prefix}/`,
        namespaced: definition.spec.scope === 'Namespaced',
        fieldReaders: {},
      });
      // The definition has changed while its objects were being loaded.
      if (cache.kind(DEFINITIONS).get('', object.name) !== object) return;
      this.#replace(object.name, this.#entryOf(object, definition, text, prefix, kindCache));
    } catch (error) {
      log.error('cannot serve a custom resource definition', { definition: object.name, error: messageOf(error) });
    }
  }

  #entryOf(
    object: CachedObject,
    definition: CustomResourceDefinition,
    text: string,
    prefix: string,
    cache: KindCache,
  ): Entry {
    const { webhooks, kindOptions, isBuiltIn } = this.#deps;
    // Schemas are the largest part of a definition. They stay encoded until the kind is used.
    for (const version of definition.spec.versions) delete version.schema;
    const options: CustomKindOptions = { ...kindOptions, schemaOf: (version) => schemaIn(object, version) };
    const converter = converterOf(definition, webhooks);
    const storageVersion = definition.spec.versions.find((each) => each.storage)?.name ?? '';
    const served = new Set<ServedKind>();
    let storage: ServedKind | undefined;
    const refusal = (): ApiError | undefined =>
      entry.terminating
        ? new ApiError('MethodNotAllowed', 'create not allowed while custom resource definition is terminating')
        : undefined;
    const byApiVersion = new Map<string, KindDefinition>();
    const versions = definition.spec.versions.map((version) => {
      const kind = customKind(definition, version, options);
      byApiVersion.set(`${kind.group}/${kind.version}`, kind);
      const one: ServedKind = {
        definition: kind,
        group: kind.group,
        version: kind.version,
        apiVersion: `${kind.group}/${kind.version}`,
        kind: kind.kind,
        plural: kind.plural,
        get schema() {
          return kind.custom?.mergeSchema;
        },
        presented: kind,
        alias: undefined,
        cache,
        view: new VersionView(kind, storageVersion, converter, (apiVersion) => byApiVersion.get(apiVersion)),
        refusal,
      };
      if (version.served && !isBuiltIn(one.apiVersion)) served.add(one);
      if (version.storage) storage = one;
      return one;
    });
    const terminating = definition.metadata?.deletionTimestamp !== undefined;
    const entry: Entry = { text, prefix, versions, served, storage, terminating };
    return entry;
  }

  #replace(name: string, entry: Entry): void {
    // Open watches still use the old schemas. They are ended, so that clients reconnect and see the new schemas.
    if (this.#drop(name) !== undefined) entry.storage?.cache?.endWatches();
    this.#entries.set(name, entry);
    for (const kind of entry.served) this.#byPath.set(`${kind.group}/${kind.version}/${kind.plural}`, kind);
    this.#changed();
  }

  #drop(name: string): Entry | undefined {
    const entry = this.#entries.get(name);
    if (entry === undefined) return undefined;
    this.#entries.delete(name);
    for (const kind of entry.served) this.#byPath.delete(`${kind.group}/${kind.version}/${kind.plural}`);
    return entry;
  }

  #forget(name: string): void {
    const entry = this.#drop(name);
    if (entry === undefined) return;
    this.#deps.cache.removeKind(entry.prefix);
    this.#changed();
  }

  #changed(): void {
    this.#all = undefined;
    this.#generation += 1;
    this.#deps.changed();
  }
}

/** Storage prefix of custom resource definitions. */
export const DEFINITIONS = 'apiextensions.k8s.io/customresourcedefinitions';

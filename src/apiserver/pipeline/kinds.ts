/** The served kinds: one entry per version. All versions of a kind share its storage. */

import { apiVersionOf, type KubeObject } from '../../api/meta/object.ts';
import type { ApiError } from '../../api/meta/status.ts';
import type { KindAlias, KindDefinition } from '../../api/registry/definition.ts';
import { builtinKinds } from '../../api/registry/index.ts';
import { noteVersion, servedAs } from '../../api/registry/versions.ts';
import { type ObjectNode, schemaOf, schemaOfType } from '../../api/schema/index.ts';
import type { ObjectView } from '../storage/object-view.ts';
import type { CachedObject } from '../watch-cache/cached-object.ts';
import type { KindCache, KindCacheOptions } from '../watch-cache/kind-cache.ts';
import type { WatchCache } from '../watch-cache/watch-cache.ts';
import { keptBytes } from './kept-bytes.ts';

export interface ServedKind {
  readonly definition: KindDefinition;
  readonly group: string;
  readonly version: string;
  /** Served group and version, for example `apps/v1`. */
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  /** Schema of the served version. */
  readonly schema: ObjectNode | undefined;
  /**
   * Definition used for documents and columns. It differs from the stored kind if the kind has another name in this
   * group.
   */
  readonly presented: KindDefinition;
  /** Conversion between the storage version and this version. Undefined for the storage version. */
  readonly alias: KindAlias | undefined;
  /** Cache of the stored objects. Undefined for computed kinds. */
  readonly cache: KindCache | undefined;
  /** View that converts stored objects when they are served. Undefined if no conversion is needed. */
  readonly view?: ObjectView;
  /** The reason why no more objects may be created. Undefined: creates are allowed. */
  refusal?(): ApiError | undefined;
}

/** Kinds that can be added and removed at run time. */
export interface ChangingKinds {
  /** All served kinds in the order of discovery. */
  readonly all: readonly ServedKind[];
  at(group: string, version: string, plural: string): ServedKind | undefined;
  /** Changes with every change of `all`. */
  readonly generation: number;
}

export interface Kinds {
  /** Reports whether the version contains built-in kinds. */
  isBuiltIn(apiVersion: string): boolean;
  readonly all: readonly ServedKind[];
  /** All served definitions: built-in kinds, then custom kinds. */
  readonly definitions: readonly KindDefinition[];
  /** Built-in definitions, including definitions of versions that runtimeConfig switches off. */
  readonly builtin: readonly KindDefinition[];
  /** Custom definitions by group and version. The list is unchanged as long as `generation` is unchanged. */
  readonly custom: readonly KindDefinition[];
  readonly generation: number;
  at(group: string, version: string, plural: string): ServedKind | undefined;
  /** Storage version of a built-in kind, served or not. */
  stored(plural: string, group: string): ServedKind;
}

export function cacheOptions(): KindCacheOptions[] {
  return builtinKinds
    .filter((definition) => definition.isComputed !== true)
    .map((definition) => ({
      prefix: `/registry/${definition.storagePrefix}/`,
      namespaced: definition.namespaced,
      fieldReaders: definition.fieldSelectors ?? {},
    }));
}

/** `changing` returns the kinds that are served in addition to the built-in kinds. */
export function serveKinds(
  cache: WatchCache,
  changing: () => ChangingKinds,
  builtin: readonly KindDefinition[],
): Kinds {
  const all: ServedKind[] = [];
  /** Versions of all kinds by plural name, usually of a single kind. */
  const byPlural = new Map<string, ServedKind[]>();
  const stored = new Map<string, ServedKind>();
  for (const definition of builtin) {
    const kindCache = definition.isComputed === true ? undefined : cache.kind(definition.storagePrefix);
    const versions = [undefined, ...(definition.aliases ?? [])];
    for (const alias of versions) {
      const { group, version } = alias ?? definition;
      const presented = servedAs(definition, alias);
      const { kind, plural } = presented;
      const served: ServedKind = {
        definition,
        presented,
        group,
        version,
        apiVersion: apiVersionOf({ group, version }),
        kind,
        plural,
        schema: alias === undefined ? schemaOfType(definition.schemaName) : schemaOf({ group, version, kind }),
        alias,
        cache: kindCache,
      };
      if (alias === undefined) stored.set(`${definition.plural}.${group}`, served);
      if (definition.unserved?.has(`${group}/${version}`) === true) continue;
      all.push(served);
      const namesakes = byPlural.get(plural);
      if (namesakes === undefined) byPlural.set(plural, [served]);
      else namesakes.push(served);
    }
  }
  const versions: ReadonlySet<string> = new Set(all.map(({ apiVersion }) => apiVersion));
  return {
    isBuiltIn: (apiVersion) => versions.has(apiVersion),
    get all() {
      return [...all, ...changing().all];
    },
    get definitions() {
      return [...builtin, ...this.custom];
    },
    builtin,
    get custom() {
      return changing().all.map((kind) => kind.definition);
    },
    get generation() {
      return changing().generation;
    },
    at: (group, version, plural) => {
      for (const kind of byPlural.get(plural) ?? NONE) {
        if (kind.group === group && kind.version === version) return kind;
      }
      return changing().at(group, version, plural);
    },
    stored: (plural, group) => {
      const found = stored.get(`${plural}.${group}`);
      if (found === undefined) throw new Error(`kind not registered: ${plural}.${group}`);
      return found;
    },
  };
}

const NONE: readonly ServedKind[] = [];
const converted = new WeakMap<CachedObject, Map<KindAlias, Buffer>>();

/** Bytes of an object in the requested version. Converted versions are cached with the object. */
export function bytesAs(kind: ServedKind, object: CachedObject): Buffer {
  if (kind.alias === undefined) return object.bytes;
  let versions = converted.get(object);
  if (versions === undefined) {
    versions = new Map();
    converted.set(object, versions);
  }
  let bytes = versions.get(kind.alias);
  if (bytes === undefined) {
    bytes =
      (kind.alias.identical === true ? withApiVersion(object.bytes, kind.apiVersion) : undefined) ??
      keptBytes([Buffer.from(JSON.stringify(fromStored(kind, object.parse())))]);
    versions.set(kind.alias, bytes);
  }
  return bytes;
}

const API_VERSION = Buffer.from('{"apiVersion":"');
const QUOTE = 0x22;

/**
 * Replaces the apiVersion in the bytes. Undefined if the bytes do not begin with an apiVersion, which may happen if
 * another API server has written them.
 */
function withApiVersion(bytes: Buffer, apiVersion: string): Buffer | undefined {
  if (!bytes.subarray(0, API_VERSION.length).equals(API_VERSION)) return undefined;
  const end = bytes.indexOf(QUOTE, API_VERSION.length);
  return keptBytes([API_VERSION, Buffer.from(apiVersion), bytes.subarray(end)]);
}

/** Converts a stored object to the served version. */
export function fromStored(kind: ServedKind, object: KubeObject): KubeObject {
  if (kind.alias === undefined) return object;
  const { apiVersion: _a, kind: _k, ...rest } = kind.alias.convertFrom(object);
  return { apiVersion: kind.apiVersion, kind: kind.kind, ...rest };
}

/** Converts an object of the served version to the storage version. */
export function toStored(kind: ServedKind, object: KubeObject): KubeObject {
  if (kind.alias === undefined) return object;
  const stored = kind.alias.convertTo(object);
  noteVersion(stored, kind.version);
  stored.apiVersion = apiVersionOf(kind.definition);
  stored.kind = kind.definition.kind;
  return stored;
}

/** The object in the version that the kind serves. */
export function inServedVersion(kind: ServedKind, object: CachedObject): CachedObject | Promise<CachedObject> {
  return kind.view === undefined ? object : kind.view.of(object);
}

/** Upstream's warning for clients of a deprecated version. */
export function deprecationWarning({ apiVersion, kind, alias, definition }: ServedKind): string {
  const { since = '', removed = '' } = (alias ?? definition).deprecated ?? {};
  const warning = `${apiVersion} ${kind} is deprecated in v${since}+, unavailable in v${removed}+`;
  return alias === undefined ? warning : `${warning}; use ${apiVersionOf(successor(definition))} ${kind}`;
}

/** Replacement of a deprecated kind. Events are stored in the core group but were replaced by events.k8s.io. */
function successor(definition: KindDefinition): { group: string; version: string } {
  return definition.kind === 'Event' ? { group: 'events.k8s.io', version: 'v1' } : definition;
}

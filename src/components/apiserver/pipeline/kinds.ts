/** The kinds as they are served: one entry per version, all with the same storage. */

import { apiVersionOf, type KubeObject } from '../../../api/meta/object.ts';
import type { ApiError } from '../../../api/meta/status.ts';
import type { KindAlias, KindDefinition } from '../../../api/registry/definition.ts';
import { builtinKinds } from '../../../api/registry/index.ts';
import { noteVersion, servedAs } from '../../../api/registry/versions.ts';
import { type ObjectNode, schemaOf, schemaOfType } from '../../../api/schema/index.ts';
import type { ObjectView } from '../storage/object-view.ts';
import type { CachedObject } from '../watchcache/cached-object.ts';
import type { KindCache, KindCacheOptions } from '../watchcache/kind-cache.ts';
import type { WatchCache } from '../watchcache/watch-cache.ts';
import { keptBytes } from './kept-bytes.ts';

export interface ServedKind {
  readonly definition: KindDefinition;
  readonly group: string;
  readonly version: string;
  /** `apps/v1`, as it is served. */
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  /** Schema of the served version. */
  readonly schema: ObjectNode | undefined;
  /** The definition by which it is presented: that of the stored kind, unless it has another name here. */
  readonly presented: KindDefinition;
  /** Set when this is not the stored version. */
  readonly alias: KindAlias | undefined;
  /** Undefined for virtual kinds. */
  readonly cache: KindCache | undefined;
  /** Present where stored objects are not simply what is served. */
  readonly view?: ObjectView;
  /** Why nothing more may be created; undefined: it may. */
  refusal?(): ApiError | undefined;
}

/** Kinds that come and go while the server runs. */
export interface ChangingKinds {
  /** In the order of discovery. */
  readonly all: readonly ServedKind[];
  at(group: string, version: string, plural: string): ServedKind | undefined;
  /** Changes whenever `all` does. */
  readonly generation: number;
}

export interface Kinds {
  /** Whether this server has kinds of its own in the version. */
  isBuiltIn(apiVersion: string): boolean;
  readonly all: readonly ServedKind[];
  /** What is served, for documents about it: built-in kinds, then custom ones. */
  readonly definitions: readonly KindDefinition[];
  /** Of those, the ones that are always there; of what is switched off, they know it. */
  readonly builtin: readonly KindDefinition[];
  /** And the ones that come and go, by group and version; equal generations mean equal definitions. */
  readonly custom: readonly KindDefinition[];
  readonly generation: number;
  /** By `group/version/plural`. */
  at(group: string, version: string, plural: string): ServedKind | undefined;
  /** The stored version of a built-in kind, served or not. */
  stored(plural: string, group: string): ServedKind;
}

export function cacheOptions(): KindCacheOptions[] {
  return builtinKinds
    .filter((definition) => definition.virtual !== true)
    .map((definition) => ({
      prefix: `/registry/${definition.storagePrefix}/`,
      namespaced: definition.namespaced,
      fieldReaders: definition.fieldSelectors ?? {},
    }));
}

/** `changing` are served beside the built-in kinds. */
export function serveKinds(
  cache: WatchCache,
  changing: () => ChangingKinds,
  builtin: readonly KindDefinition[],
): Kinds {
  const all: ServedKind[] = [];
  /** The versions of all kinds of one name: mostly one. */
  const byPlural = new Map<string, ServedKind[]>();
  const stored = new Map<string, ServedKind>();
  for (const definition of builtin) {
    const kindCache = definition.virtual === true ? undefined : cache.kind(definition.storagePrefix);
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

/** The bytes of an object in the version that is asked for; other versions are made once and kept beside the first. */
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

/** The same bytes under another version; undefined when they do not begin with it, as those of another API server. */
function withApiVersion(bytes: Buffer, apiVersion: string): Buffer | undefined {
  if (!bytes.subarray(0, API_VERSION.length).equals(API_VERSION)) return undefined;
  const end = bytes.indexOf(QUOTE, API_VERSION.length);
  return keptBytes([API_VERSION, Buffer.from(apiVersion), bytes.subarray(end)]);
}

/** A stored object as the served version. */
export function fromStored(kind: ServedKind, object: KubeObject): KubeObject {
  if (kind.alias === undefined) return object;
  const { apiVersion: _a, kind: _k, ...rest } = kind.alias.convertFrom(object);
  return { apiVersion: kind.apiVersion, kind: kind.kind, ...rest };
}

/** An object of the served version as it is stored. */
export function toStored(kind: ServedKind, object: KubeObject): KubeObject {
  if (kind.alias === undefined) return object;
  const stored = kind.alias.convertTo(object);
  noteVersion(stored, kind.version);
  stored.apiVersion = apiVersionOf(kind.definition);
  stored.kind = kind.definition.kind;
  return stored;
}

/** The object as the kind serves it. */
export function shown(kind: ServedKind, object: CachedObject): CachedObject | Promise<CachedObject> {
  return kind.view === undefined ? object : kind.view.of(object);
}

/** Upstream's warning for clients of a deprecated version. */
export function deprecationWarning({ apiVersion, kind, alias, definition }: ServedKind): string {
  const { since = '', removed = '' } = (alias ?? definition).deprecated ?? {};
  const warning = `${apiVersion} ${kind} is deprecated in v${since}+, unavailable in v${removed}+`;
  return alias === undefined ? warning : `${warning}; use ${apiVersionOf(successor(definition))} ${kind}`;
}

/** Events are stored in the core group; everything that is deprecated of them points to the group that came after. */
function successor(definition: KindDefinition): { group: string; version: string } {
  return definition.kind === 'Event' ? { group: 'events.k8s.io', version: 'v1' } : definition;
}

/** Objects of a list and its resource version. */

import { ApiError } from '../../../api/meta/status.ts';
import { storeRevision, toStoreKey } from '../../../base/brand.ts';
import { formatLabelSelector, isEverything, requiredFieldValue } from '../../../base/selector.ts';
import { prefixEnd, StoreError } from '../../../store/port.ts';
import type { ServedKind } from '../../pipeline/kinds.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';
import type { KindCache } from '../../watch-cache/kind-cache.ts';
import { readLabels } from '../../watch-cache/label-index.ts';
import type { ServerContext } from '../context.ts';
import { decodeContinue, encodeContinue } from './continue-token.ts';
import { type ListOptions, matcherOf } from './list-options.ts';

type SnapshotContext = Pick<ServerContext, 'cache' | 'store'>;

export interface Snapshot {
  readonly revision: number;
  readonly objects: readonly CachedObject[];
  readonly continueToken: string | undefined;
  readonly remaining: number | undefined;
  /**
   * True if the objects are all objects of the kind (in the requested namespace) that match `selection`, directly from
   * the cache.
   */
  readonly whole: boolean;
  /** Label selector as text. '' without a label selector. */
  readonly selection?: string;
}

const STORE_PAGE = 500;

/** Parameters of a list. */
interface Query {
  readonly context: SnapshotContext;
  readonly kind: ServedKind;
  readonly cache: KindCache;
  readonly namespace: string | undefined;
  readonly options: ListOptions;
}

export async function takeSnapshot(
  context: SnapshotContext,
  kind: ServedKind,
  cache: KindCache,
  namespace: string | undefined,
  options: ListOptions,
): Promise<Snapshot> {
  const query: Query = { context, kind, cache, namespace, options };
  if (options.continueToken !== undefined) return continued(query);
  const { resourceVersion, match } = options;
  const exact =
    match === 'Exact' ||
    (match === undefined && options.limit !== undefined && resourceVersion !== undefined && resourceVersion > 0);
  if (exact && resourceVersion !== undefined) {
    return atRevision(query, resourceVersion, '');
  }
  if (resourceVersion === undefined) await context.cache.freshen();
  else if (resourceVersion > context.cache.revision) await context.cache.waitFor(resourceVersion);
  if (!isEverything(options.labels)) await readLabels(cache.list(namespace));
  return fromCacheViewed(query, '', context.cache.revision);
}

/** Fast path: a list from the cache without waiting. The cache must be up to date. */
export function snapshotNow(
  context: SnapshotContext,
  kind: ServedKind,
  cache: KindCache,
  namespace: string | undefined,
  options: ListOptions,
): Snapshot {
  return fromCache({ context, kind, cache, namespace, options }, '', context.cache.revision);
}

async function continued(query: Query): Promise<Snapshot> {
  const { context, options } = query;
  const { revision, start } = decodeContinue(options.continueToken ?? '');
  if (options.resourceVersion !== undefined && options.resourceVersion !== 0) {
    throw new ApiError('BadRequest', 'specifying resource version is not allowed when using continue');
  }
  if (revision === undefined) {
    await context.cache.freshen();
    return fromCacheViewed(query, start, context.cache.revision);
  }
  return atRevision(query, revision, start);
}

async function atRevision(query: Query, revision: number, start: string): Promise<Snapshot> {
  const { context, cache, options } = query;
  if (revision > context.cache.revision) await context.cache.waitFor(revision);
  // As upstream, a token expires with the compacted history, even if the cache still has the data.
  if (options.continueToken !== undefined && revision < context.cache.compactedTo) throw expired(start, options);
  // No object of the kind has changed after `revision`, so the cache has the state of `revision`.
  if (cache.lastChange <= revision) return fromCacheViewed(query, start, revision);
  try {
    return await fromStore(query, revision, start);
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== 'compacted') throw error;
    throw expired(start, options);
  }
}

/** Error 410. As upstream, it contains a token with which the list can be continued at the current revision. */
function expired(start: string, options: ListOptions): ApiError {
  if (options.continueToken === undefined)
    return new ApiError('Expired', 'The resourceVersion for the provided list is too old.');
  const error = new ApiError(
    'Expired',
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.',
  );
  return Object.assign(error, { listMeta: { continue: encodeContinue({ revision: undefined, start }) } });
}

function fromCache(query: Query, start: string, revision: number): Snapshot {
  const { context, kind, options } = query;
  if (!context.cache.ready)
    throw new ApiError('ServiceUnavailable', 'the watch cache is loading', { retryAfterSeconds: 1 });
  return page(kind, candidates(query, start), options, start, revision);
}

/** Like `fromCache`, for kinds whose objects must be converted to the requested version. */
async function fromCacheViewed(query: Query, start: string, revision: number): Promise<Snapshot> {
  const { context, kind, options } = query;
  const { view } = kind;
  if (view === undefined || !context.cache.ready) return fromCache(query, start, revision);
  const all = candidates(query, start);
  // Only the objects of the page are converted, unless a selector depends on converted fields.
  if (matcherOf(kind, options) === undefined && options.limit !== undefined && all.length > options.limit) {
    const plain = page(kind, all, options, start, revision);
    return { ...plain, objects: await view.ofAll(plain.objects) };
  }
  return page(kind, await view.ofAll(all), options, start, revision);
}

function candidates({ kind, cache, namespace, options }: Query, start: string): readonly CachedObject[] {
  const name = requiredFieldValue(options.fields, 'metadata.name');
  let all: readonly CachedObject[];
  if (name !== undefined && (namespace !== undefined || !kind.definition.namespaced)) {
    const one = cache.get(namespace ?? '', name);
    all = one === undefined ? [] : [one];
  } else {
    // Converted objects may have other labels than stored objects, so the label index cannot be used.
    all = kind.view === undefined ? cache.listSelected(namespace, options.labels) : cache.list(namespace);
  }
  return start === '' ? all : startingAt(all, start);
}

/** Objects whose key is not below `start`. `sorted` must be in key order. */
function startingAt(sorted: readonly CachedObject[], start: string): readonly CachedObject[] {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as CachedObject).key < start) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? sorted : sorted.slice(low);
}

/** Token for the keys directly after the last object, so that a request with another selector misses no object. */
function tokenAfter(objects: readonly CachedObject[], revision: number): string | undefined {
  const last = objects.at(-1);
  return last === undefined ? undefined : encodeContinue({ revision, start: `${last.key}\0` });
}

function page(
  kind: ServedKind,
  all: readonly CachedObject[],
  options: ListOptions,
  start: string,
  revision: number,
): Snapshot {
  const matches = matcherOf(kind, options);
  const matching = matches === undefined ? all : all.filter(matches);
  if (options.limit === undefined || matching.length <= options.limit) {
    const whole = options.fields.length === 0 && start === '' && !options.labels.nothing;
    const selection = formatLabelSelector(options.labels);
    return { revision, objects: matching, continueToken: undefined, remaining: undefined, whole, selection };
  }
  const objects = matching.slice(0, options.limit);
  return {
    revision,
    objects,
    continueToken: tokenAfter(objects, revision),
    remaining: matches === undefined ? matching.length - objects.length : undefined,
    whole: false,
  };
}

/** Reads an older state from the store's history, page by page. */
async function fromStore(query: Query, revision: number, start: string): Promise<Snapshot> {
  const { context, kind, cache, namespace, options } = query;
  const { prefix } = cache.options;
  const scope = namespace === undefined || !kind.definition.namespaced ? prefix : `${prefix}${namespace}/`;
  const matches = matcherOf(kind, options);
  const objects: CachedObject[] = [];
  let from = start === '' ? scope : `${prefix}${start}`;
  if (from < scope) from = scope;
  for (;;) {
    const wanted = options.limit === undefined ? STORE_PAGE : Math.min(STORE_PAGE, options.limit + 1);
    const found = await context.store.range(from, prefixEnd(scope), {
      revision: storeRevision(revision),
      limit: wanted,
    });
    let seen = 0;
    for (const kv of found.kvs) {
      seen += 1;
      const decoded = cache.decode(toStoreKey(kv.key), kv.value, kv.modRevision, kv.createRevision);
      const object = decoded === undefined || kind.view === undefined ? decoded : await kind.view.of(decoded);
      if (object === undefined || (matches !== undefined && !matches(object))) continue;
      if (options.limit !== undefined && objects.length === options.limit) {
        const remaining = matches === undefined ? found.count - seen + 1 : undefined;
        return {
          revision,
          objects,
          continueToken: tokenAfter(objects, revision),
          remaining,
          whole: false,
        };
      }
      objects.push(object);
    }
    const last = found.kvs.at(-1);
    if (!found.more || last === undefined) break;
    from = `${last.key}\0`;
  }
  return { revision, objects, continueToken: undefined, remaining: undefined, whole: false };
}

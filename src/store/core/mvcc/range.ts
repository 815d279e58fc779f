/** Range reads of the key index, with etcd's order of filter, sort and limit. Source: etcd apply.go, Range. */
import { encodedValue } from '../messages/event.ts';
import { type RangeRequest, SortOrder, SortTarget } from '../messages/kv.ts';
import { type Pinned, type RangeAnswer, ValuesNeeded } from './decision.ts';
import type { KeyIndex } from './key-index.ts';
import { intervalOf } from './txn-check.ts';
import { liveAt, type Version } from './version.ts';

/** Reads `request` at revision `at`. Throws ValuesNeeded. */
export function readRange(index: KeyIndex, request: RangeRequest, at: number, pinned: Pinned): RangeAnswer {
  const filtered =
    request.minModRevision > 0 ||
    request.maxModRevision > 0 ||
    request.minCreateRevision > 0 ||
    request.maxCreateRevision > 0;
  let sortOrder = request.sortOrder;
  if (request.sortTarget !== SortTarget.key && sortOrder === SortOrder.none) sortOrder = SortOrder.ascend;
  const sorted =
    sortOrder === SortOrder.descend || (sortOrder === SortOrder.ascend && request.sortTarget !== SortTarget.key);
  // Without a sort order, etcd applies the limit first and sorts the remaining keys. Source: etcd apply.go, Range.
  const all = filtered || request.sortOrder !== SortOrder.none || request.limit <= 0;
  const keep = all ? Number.POSITIVE_INFINITY : request.limit + 1;
  let versions: Version[] = [];
  let count = 0;
  if (request.end === '') {
    const version = index.at(request.key, at);
    if (version !== undefined) versions.push(version);
    count = versions.length;
  } else {
    const { start, end } = intervalOf(request.key, request.end);
    let rest = start;
    if (!request.countOnly) {
      index.walk(start, end, (history, key) => {
        const version = liveAt(history, at);
        if (version !== undefined) versions.push(version);
        rest = `${key}\0`;
        return versions.length < keep;
      });
    }
    count = versions.length + (versions.length < keep && !request.countOnly ? 0 : index.count(rest, end, at));
  }
  if (request.countOnly) versions = [];
  if (filtered) versions = versions.filter((version) => passes(version, request));
  if (sorted) versions = sortVersions(versions, request.sortTarget, sortOrder === SortOrder.descend, pinned);
  const more = request.limit > 0 && versions.length > request.limit;
  if (more) versions.length = request.limit;
  const kvs = request.keysOnly ? [] : valuesOf(versions, pinned);
  return { kind: 'range', versions, kvs, keysOnly: request.keysOnly, more, count };
}

function sortVersions(versions: Version[], target: number, descending: boolean, pinned: Pinned): Version[] {
  const sign = descending ? -1 : 1;
  if (target === SortTarget.value) {
    const kvs = valuesOf(versions, pinned);
    const pairs = versions.map((version, i) => ({ version, value: encodedValue(kvs[i] as Buffer) }));
    return pairs.sort((a, b) => sign * a.value.compare(b.value)).map((pair) => pair.version);
  }
  if (target === SortTarget.key) return versions.reverse();
  const rank = (version: Version): number =>
    target === SortTarget.version
      ? version.version
      : target === SortTarget.create
        ? version.createRevision
        : version.revision;
  return versions.sort((a, b) => sign * (rank(a) - rank(b)));
}

/** Encoded key-values of `versions`, in their order. Throws ValuesNeeded if one is neither in memory nor pinned. */
export function valuesOf(versions: readonly Version[], pinned: Pinned): Buffer[] {
  const kvs: Buffer[] = [];
  let missing: Version[] | undefined;
  for (const version of versions) {
    const kv = version.kv ?? pinned.get(version);
    if (kv === undefined) {
      missing ??= [];
      missing.push(version);
    } else kvs.push(kv);
  }
  if (missing !== undefined) throw new ValuesNeeded(missing, versions.length);
  return kvs;
}

function passes(version: Version, request: RangeRequest): boolean {
  return (
    (request.minModRevision <= 0 || version.revision >= request.minModRevision) &&
    (request.maxModRevision <= 0 || version.revision <= request.maxModRevision) &&
    (request.minCreateRevision <= 0 || version.createRevision >= request.minCreateRevision) &&
    (request.maxCreateRevision <= 0 || version.createRevision <= request.maxCreateRevision)
  );
}

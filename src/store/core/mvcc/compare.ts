import { type Compare, CompareResult, CompareTarget } from '../messages/kv.ts';
import type { Version } from './version.ts';

/**
 * Whether a comparison holds for one key. A key that does not exist has version, revisions and lease 0; comparisons of
 * its value are always false. `value` is only called for comparisons of the value. Source: etcd applyCompare.
 */
export function isComparisonTrue(
  compare: Compare,
  version: Version | undefined,
  value: (version: Version) => Buffer,
): boolean {
  switch (compare.target) {
    case CompareTarget.version:
      return ordered(compare.result, version?.version ?? 0, compare.number);
    case CompareTarget.create:
      return ordered(compare.result, version?.createRevision ?? 0, compare.number);
    case CompareTarget.mod:
      return ordered(compare.result, version?.revision ?? 0, compare.number);
    case CompareTarget.value:
      return version !== undefined && ordered(compare.result, value(version).compare(compare.value), 0);
    case CompareTarget.lease: {
      const lease = version?.lease ?? 0n;
      return ordered(compare.result, lease < compare.lease ? -1 : lease > compare.lease ? 1 : 0, 0);
    }
    default:
      return ordered(compare.result, 0, 0);
  }
}

function ordered(result: number, actual: number, wanted: number): boolean {
  switch (result) {
    case CompareResult.equal:
      return actual === wanted;
    case CompareResult.greater:
      return actual > wanted;
    case CompareResult.less:
      return actual < wanted;
    case CompareResult.notEqual:
      return actual !== wanted;
    default:
      return true;
  }
}

/** Determines the kind of a store key. */
import { builtinKinds } from '../../api/registry/index.ts';
import type { GroupResource } from './configuration.ts';

const ROOT = '/registry/';

/**
 * Returns a function that finds the kind of a store key. Built-in kinds are found by their storage prefix. Custom kinds
 * are stored below their group, which contains a dot.
 */
export function createResourceOf(): (key: string) => GroupResource | undefined {
  const known = new Map<string, GroupResource>();
  for (const { isComputed, storagePrefix, group, plural } of builtinKinds) {
    if (isComputed !== true) known.set(storagePrefix, { group, resource: plural });
  }
  return (key) => {
    if (!key.startsWith(ROOT)) return undefined;
    const first = key.indexOf('/', ROOT.length);
    if (first < 0) return undefined;
    const head = key.slice(ROOT.length, first);
    const plain = known.get(head);
    if (plain !== undefined) return plain;
    const second = key.indexOf('/', first + 1);
    if (second < 0) return undefined;
    const place = key.slice(ROOT.length, second);
    const found = known.get(place);
    if (found !== undefined || !head.includes('.')) return found;
    const custom = { group: head, resource: key.slice(first + 1, second) };
    known.set(place, custom);
    return custom;
  };
}

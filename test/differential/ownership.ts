/**
 * A simple model of field ownership as an oracle: a set of paths per manager, with the rules of server-side apply from
 * KEP-555.
 */
import { type Leaf, same } from './tree.ts';

/** `name|Apply` or `name|Update`, with the suffix `|status` for writes to the status. */
export type Owner = string;
export type Owners = ReadonlyMap<Owner, ReadonlySet<string>>;
type Leaves = ReadonlyMap<string, Leaf>;

function without(owners: Owners, drop: (owner: Owner, path: string) => boolean): Map<Owner, Set<string>> {
  const left = new Map<Owner, Set<string>>();
  for (const [owner, paths] of owners) {
    const kept = new Set([...paths].filter((path) => !drop(owner, path)));
    if (kept.size > 0) left.set(owner, kept);
  }
  return left;
}

/** A manager that changes a value without apply becomes its only owner. */
export function afterUpdate(owners: Owners, writer: Owner, before: Leaves, after: Leaves): Owners {
  const changed = [...after.keys()].filter((path) => !same(before.get(path), after.get(path)));
  const left = without(owners, (_, path) => !after.has(path) || changed.includes(path));
  if (changed.length > 0) left.set(writer, new Set([...(left.get(writer) ?? []), ...changed]));
  return left;
}

export interface Applied {
  /** Paths that other managers own with another value. Unless the apply is forced, conflicts prevent it. */
  readonly conflicts: readonly string[];
  readonly leaves: Leaves;
  readonly owners: Owners;
}

export function applied(owners: Owners, applier: Owner, live: Leaves, wanted: Leaves, force: boolean): Applied {
  const differs = (path: string): boolean => live.has(path) && !same(live.get(path), wanted.get(path));
  const ownedByOthers = (path: string): boolean =>
    [...owners].some(([owner, paths]) => owner !== applier && paths.has(path));
  const conflicts = [...wanted.keys()].filter((path) => differs(path) && ownedByOthers(path));
  if (conflicts.length > 0 && !force) return { conflicts, leaves: live, owners };
  const leaves = new Map(live);
  for (const path of owners.get(applier) ?? []) if (!wanted.has(path) && !ownedByOthers(path)) leaves.delete(path);
  for (const [path, leaf] of wanted) leaves.set(path, leaf);
  const left = without(owners, (owner, path) => owner !== applier && conflicts.includes(path));
  left.delete(applier);
  if (wanted.size > 0) left.set(applier, new Set(wanted.keys()));
  return { conflicts, leaves, owners: left };
}

/** Documents of nested maps with plain values, for simple implementations of patches and ownership. */
export type Leaf = string | number | boolean | readonly (string | number)[];
export interface Tree {
  [key: string]: Leaf | Tree;
}

const isTree = (value: Leaf | Tree | null | undefined): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** All plain values by path, for example `data/a`. Lists are plain values, because all lists here are atomic. */
export function leavesOf(tree: Tree, prefix = ''): Map<string, Leaf> {
  const leaves = new Map<string, Leaf>();
  for (const [key, value] of Object.entries(tree)) {
    if (!isTree(value)) leaves.set(prefix + key, value);
    else for (const [path, leaf] of leavesOf(value, `${prefix}${key}/`)) leaves.set(path, leaf);
  }
  return leaves;
}

/** Document with these values, without empty maps. */
export function treeOf(leaves: ReadonlyMap<string, Leaf>): Tree {
  const tree: Tree = {};
  for (const [path, leaf] of leaves) {
    const keys = path.split('/');
    let at = tree;
    for (const key of keys.slice(0, -1)) {
      at[key] ??= {};
      at = at[key] as Tree;
    }
    at[keys.at(-1) as string] = leaf;
  }
  return tree;
}

export const same = (a: Leaf | undefined, b: Leaf | undefined): boolean => JSON.stringify(a) === JSON.stringify(b);

export function sameLeaves(a: ReadonlyMap<string, Leaf>, b: ReadonlyMap<string, Leaf>): boolean {
  return a.size === b.size && [...a].every(([path, leaf]) => same(leaf, b.get(path)));
}

export type Patch = { [key: string]: Leaf | Patch | null };

/** Merge patch according to RFC 7386. */
export function mergePatched(target: Tree, patch: Patch): Tree {
  const result: Tree = { ...target };
  for (const [key, value] of Object.entries(patch)) {
    const before = result[key];
    if (value === null) delete result[key];
    else if (isTree(value as Leaf | Tree)) result[key] = mergePatched(isTree(before) ? before : {}, value as Patch);
    else result[key] = value as Leaf;
  }
  return result;
}

export interface Operation {
  readonly op: 'add' | 'replace' | 'remove' | 'test';
  readonly path: string;
  readonly value?: Leaf;
}

/**
 * JSON patch according to RFC 6902 on maps. As in upstream's library, a missing key can be replaced. Undefined if an
 * operation fails.
 */
export function jsonPatched(target: Tree, operations: readonly Operation[]): Tree | undefined {
  const result = structuredClone(target);
  for (const { op, path, value } of operations) {
    const keys = path.slice(1).split('/');
    const last = keys.pop() as string;
    let at: Leaf | Tree | undefined = result;
    for (const key of keys) at = isTree(at) ? at[key] : undefined;
    if (!isTree(at)) return undefined;
    if ((op === 'remove' || op === 'test') && !(last in at)) return undefined;
    if (op === 'test' && !same(at[last] as Leaf, value)) return undefined;
    if (op === 'remove') delete at[last];
    else if (op !== 'test') at[last] = value as Leaf;
  }
  return result;
}

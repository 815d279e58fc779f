/**
 * Merges Ignition configs. Sections are merged recursively, and list entries by their key. Any other value of the child
 * replaces that of the parent. A merged entry keeps the position that it had in the parent. Source: Ignition's "Config
 * Merging" operator notes, `config/merge`.
 */
import { isRecord } from './schema.ts';
import type { IgnitionConfig } from './types.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Key field of the entries, by name of the list. In other lists, an entry as a whole is its own key. */
const KEYS: ReadonlyMap<string, string> = new Map([
  ['files', 'path'],
  ['directories', 'path'],
  ['links', 'path'],
  ['disks', 'device'],
  ['filesystems', 'device'],
  ['raid', 'name'],
  ['luks', 'name'],
  ['users', 'name'],
  ['units', 'name'],
  ['dropins', 'name'],
]);
/**
 * Lists with a common key space: an entry of the child replaces the parent's entry with the same path in any of these
 * lists.
 */
const NODES = ['directories', 'files', 'links'];

/** Merges two valid configs. The result is invalid if a path is a directory in one of them and a file in the other. */
export function mergeIgnition(parent: IgnitionConfig, child: IgnitionConfig): IgnitionConfig {
  return mergeFields({ ...parent }, { ...child }) as object as IgnitionConfig;
}

function mergeFields(parent: Fields, child: Fields): Fields {
  const names = new Set([...Object.keys(parent), ...Object.keys(child)]);
  const moved = NODES.some((name) => names.has(name)) ? movedPaths(child) : undefined;
  return Object.fromEntries(
    [...names].map((name) => {
      const kept = Object.hasOwn(parent, name) ? withoutMoved(parent[name], name, moved) : undefined;
      return [name, mergeValues(kept, Object.hasOwn(child, name) ? child[name] : undefined, name)];
    }),
  );
}

function mergeValues(parent: unknown, child: unknown, name: string): unknown {
  if (child === undefined) return parent;
  if (parent === undefined) return child;
  if (Array.isArray(parent) && Array.isArray(child)) return mergeLists(parent, child, name);
  return isRecord(parent) && isRecord(child) ? mergeFields(parent, child) : child;
}

function mergeLists(parent: readonly unknown[], child: readonly unknown[], name: string): readonly unknown[] {
  if (name === 'append') return [...parent, ...child];
  const byKey = new Map(child.map((item) => [keyOf(item, name), item]));
  const used = new Set<unknown>();
  const merged = parent.map((item) => {
    const key = keyOf(item, name);
    if (!byKey.has(key)) return item;
    used.add(key);
    const other = byKey.get(key);
    return isRecord(item) && isRecord(other) ? mergeFields(item, other) : other;
  });
  const own = child.filter((item) => {
    const key = keyOf(item, name);
    const first = !used.has(key);
    // A value that the child repeats is included only once.
    used.add(key);
    return first;
  });
  return [...merged, ...own];
}

function keyOf(item: unknown, name: string): unknown {
  if (!isRecord(item)) return item;
  const field = KEYS.get(name);
  return field === undefined ? JSON.stringify(item) : item[field];
}

/** Maps each path of the child to the name of the list that contains it. */
function movedPaths(child: Fields): ReadonlyMap<unknown, string> {
  const moved = new Map<unknown, string>();
  for (const name of NODES) {
    const list = Object.hasOwn(child, name) ? child[name] : undefined;
    if (Array.isArray(list)) for (const item of list) if (isRecord(item)) moved.set(item['path'], name);
  }
  return moved;
}

function withoutMoved(value: unknown, name: string, moved: ReadonlyMap<unknown, string> | undefined): unknown {
  if (moved === undefined || moved.size === 0 || !NODES.includes(name) || !Array.isArray(value)) return value;
  return value.filter((item) => {
    const list = isRecord(item) ? moved.get(item['path']) : undefined;
    return list === undefined || list === name;
  });
}

/** Removes empty sections and sorts fields, so that equal configs have the same JSON. */
export function canonicalConfig(config: IgnitionConfig): IgnitionConfig {
  return (pruned(config) ?? {}) as IgnitionConfig;
}

function pruned(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map((item) => pruned(item) ?? {});
  if (!isRecord(value)) return value ?? undefined;
  const fields = Object.entries(value)
    .map(([name, item]) => [name, pruned(item)] as const)
    .filter(([, item]) => item !== undefined)
    .sort(([left], [right]) => (left < right ? -1 : 1));
  return fields.length === 0 ? undefined : Object.fromEntries(fields);
}

/**
 * Which copy of a catalog's directory is the newest. Each edit makes a version that names its ancestors, as commits do,
 * so that an older copy differs from one that was edited elsewhere.
 */
import type { CatalogCopy } from '../../api/kinds/nodes/catalog-report.ts';
import { digestOf } from './names.ts';

/** A copy that has missed more edits is a conflict. */
const MAX_ANCESTORS = 16;

export const firstVersion = (digest: string): CatalogCopy => ({ digest, version: digestOf(digest), ancestors: [] });

/** The same edit of the same version has the same name on each host. */
export const editedVersion = (before: CatalogCopy, digest: string): CatalogCopy => ({
  digest,
  version: digestOf(`${before.version} ${digest}`),
  ancestors: [before.version, ...before.ancestors].slice(0, MAX_ANCESTORS),
});

export type Judgement =
  /** What all masters shall have. */
  | { readonly newest: CatalogCopy }
  /** Digests of copies none of which descends from the others. */
  | { readonly conflict: readonly string[] };

/** Undefined: there is no copy. */
export function judgeCopies(copies: readonly CatalogCopy[]): Judgement | undefined {
  const ancestors = new Map<string, Set<string>>();
  for (const copy of copies)
    ancestors.set(copy.version, new Set([...(ancestors.get(copy.version) ?? []), ...copy.ancestors]));
  const heads = copies.filter(({ version }) =>
    [...ancestors].every(([other, before]) => other === version || !before.has(version)),
  );
  const digests = [...new Set(heads.map(({ digest }) => digest))].sort();
  if (digests.length > 1) return { conflict: digests };
  // Equal content that was made in several ways: all take the same of its versions.
  const newest = heads.reduce<CatalogCopy | undefined>(
    (best, each) => (best === undefined || each.version > best.version ? each : best),
    undefined,
  );
  if (newest === undefined) return undefined;
  const known = new Set([...newest.ancestors, ...(ancestors.get(newest.version) ?? [])]);
  return { newest: { ...newest, ancestors: [...known].slice(0, MAX_ANCESTORS) } };
}

/** What a host with `own` lacks to have `newest`; undefined: nothing, or its own copy is no ancestor of it. */
export function lacking(own: CatalogCopy | undefined, newest: CatalogCopy): 'content' | 'version' | undefined {
  if (own === undefined) return 'content';
  if (own.version === newest.version || own.ancestors.includes(newest.version)) return undefined;
  if (own.digest === newest.digest) return 'version';
  return newest.ancestors.includes(own.version) ? 'content' : undefined;
}

/**
 * Finds the newest copy of a catalog's directory. Each edit creates a version with a list of its ancestors, like
 * commits, so that an outdated copy can be distinguished from one that was edited independently.
 */
import type { CatalogCopy } from '../../../../../api/kinds/nodes/nodes/catalog-report.ts';
import { digestOf } from '../names.ts';

/** Number of recorded ancestors. A copy that is further behind counts as a conflict. */
const MAX_ANCESTORS = 16;

export const firstVersion = (digest: string): CatalogCopy => ({ digest, version: digestOf(digest), ancestors: [] });

/** Records an edit. The same edit of the same version gets the same name on each host. */
export const editedVersion = (before: CatalogCopy, digest: string): CatalogCopy => ({
  digest,
  version: digestOf(`${before.version} ${digest}`),
  ancestors: [before.version, ...before.ancestors].slice(0, MAX_ANCESTORS),
});

export type Judgement =
  /** Copy that all masters should have. */
  | { readonly newest: CatalogCopy }
  /** Digests of copies that were edited independently of each other. */
  | { readonly conflict: readonly string[] };

/** Undefined if there is no copy. */
export function resolveCopies(copies: readonly CatalogCopy[]): Judgement | undefined {
  const ancestors = new Map<string, Set<string>>();
  for (const copy of copies)
    ancestors.set(copy.version, new Set([...(ancestors.get(copy.version) ?? []), ...copy.ancestors]));
  const heads = copies.filter(({ version }) =>
    [...ancestors].every(([other, before]) => other === version || !before.has(version)),
  );
  const digests = [...new Set(heads.map(({ digest }) => digest))].sort();
  if (digests.length > 1) return { conflict: digests };
  // The contents are equal but were created by different edits, so all masters take the same one of these versions.
  const newest = heads.reduce<CatalogCopy | undefined>(
    (best, each) => (best === undefined || each.version > best.version ? each : best),
    undefined,
  );
  if (newest === undefined) return undefined;
  const known = new Set([...newest.ancestors, ...(ancestors.get(newest.version) ?? [])]);
  return { newest: { ...newest, ancestors: [...known].slice(0, MAX_ANCESTORS) } };
}

/** Difference from `own` to `newest`; undefined if there is none, or if `own` is not an ancestor of `newest`. */
export function lacking(own: CatalogCopy | undefined, newest: CatalogCopy): 'content' | 'version' | undefined {
  if (own === undefined) return 'content';
  if (own.version === newest.version || own.ancestors.includes(newest.version)) return undefined;
  if (own.digest === newest.digest) return 'version';
  return newest.ancestors.includes(own.version) ? 'content' : undefined;
}

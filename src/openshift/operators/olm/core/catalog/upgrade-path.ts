/**
 * Finds the newest copy of a catalog directory. Like a commit, each edit creates a version that lists its ancestors.
 * Therefore an outdated copy can be distinguished from a copy that was edited independently.
 */
import type { CatalogCopy } from '../../../../../api/kinds/nodes/nodes/catalog-report.ts';
import { digestOf } from '../names.ts';

/** Number of ancestors that a version lists. A copy that is further behind counts as a conflict. */
const MAX_ANCESTORS = 16;

export const firstVersion = (digest: string): CatalogCopy => ({ digest, version: digestOf(digest), ancestors: [] });

/** Version after an edit. If hosts apply the same edit to the same version, they create the same version. */
export const editedVersion = (before: CatalogCopy, digest: string): CatalogCopy => ({
  digest,
  version: digestOf(`${before.version} ${digest}`),
  ancestors: [before.version, ...before.ancestors].slice(0, MAX_ANCESTORS),
});

export type UpgradeDecision =
  /** Copy that all masters should have. */
  | { readonly newest: CatalogCopy }
  /** Digests of copies that were edited independently of each other. */
  | { readonly conflict: readonly string[] };

/** Compares the copies of all masters; undefined if there is no copy. */
export function resolveCopies(copies: readonly CatalogCopy[]): UpgradeDecision | undefined {
  const ancestors = new Map<string, Set<string>>();
  for (const copy of copies)
    ancestors.set(copy.version, new Set([...(ancestors.get(copy.version) ?? []), ...copy.ancestors]));
  const heads = copies.filter(({ version }) =>
    [...ancestors].every(([other, before]) => other === version || !before.has(version)),
  );
  const digests = [...new Set(heads.map(({ digest }) => digest))].sort();
  if (digests.length > 1) return { conflict: digests };
  // The contents are equal although the edits differ. All masters then select the same version, the greatest one.
  const newest = heads.reduce<CatalogCopy | undefined>(
    (best, each) => (best === undefined || each.version > best.version ? each : best),
    undefined,
  );
  if (newest === undefined) return undefined;
  const known = new Set([...newest.ancestors, ...(ancestors.get(newest.version) ?? [])]);
  return { newest: { ...newest, ancestors: [...known].slice(0, MAX_ANCESTORS) } };
}

/**
 * What `own` lacks of `newest`: its content, or only its version. Undefined if it lacks nothing, or if `own` is not an
 * ancestor of `newest`.
 */
export function missingPart(own: CatalogCopy | undefined, newest: CatalogCopy): 'content' | 'version' | undefined {
  if (own === undefined) return 'content';
  if (own.version === newest.version || own.ancestors.includes(newest.version)) return undefined;
  if (own.digest === newest.digest) return 'version';
  return newest.ancestors.includes(own.version) ? 'content' : undefined;
}

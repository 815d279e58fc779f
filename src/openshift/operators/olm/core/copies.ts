/** Compares the masters' copies of a catalog directory and plans which copy each master fetches. */
import type { CatalogCopy } from '../../../../api/kinds/nodes/nodes/catalog-report.ts';
import { firstVersion, missingPart, resolveCopies } from './catalog/upgrade-path.ts';

export interface CopyReport {
  readonly master: string;
  /** Undefined if the master has no copy. */
  readonly found: { readonly digest: string; readonly copy: CatalogCopy | undefined } | undefined;
}

export interface Copies {
  readonly status: 'True' | 'False';
  readonly reason: 'CopiesEqual' | 'CopiesDiffer' | 'CopiesConflict';
  readonly message: string;
  /** Copy that each master must fetch, by name of the master. Masters that have the newest copy are not included. */
  readonly wanted: ReadonlyMap<string, CatalogCopy>;
}

const MAX_NAMED = 10;
const SHOWN = 'sha256:'.length + 12;

/**
 * Compares the copies.
 *
 * @param offered Digest of the copy on the leading master; undefined if it has none.
 */
export function copiesOf(offered: string | undefined, reports: readonly CopyReport[]): Copies {
  const copies = reports.flatMap(({ found }) =>
    found === undefined ? [] : [found.copy ?? firstVersion(found.digest)],
  );
  const judged = resolveCopies(copies);
  const content = offered === undefined ? 'no copy is offered' : `content ${offered} is offered`;
  if (judged === undefined) {
    const message = offered === undefined ? content : `content ${offered}`;
    return { status: offered === undefined ? 'False' : 'True', ...reasonOf(offered), message, wanted: new Map() };
  }
  if ('conflict' in judged) {
    const held = judged.conflict.map((digest) => `${short(digest)} on ${mastersWith(digest, reports).join(', ')}`);
    const message = `${content}; copies were edited on several masters: ${held.join('; ')}; remove the directory from the masters whose copy is not wanted`;
    return { status: 'False', reason: 'CopiesConflict', message, wanted: new Map() };
  }
  const { newest } = judged;
  const wanted = new Map<string, CatalogCopy>();
  for (const { master, found } of reports) {
    // A host with an older release reports no version, so its copy counts as a first version.
    const own = found === undefined ? undefined : (found.copy ?? firstVersion(found.digest));
    if (missingPart(own, newest) !== undefined) wanted.set(master, newest);
  }
  const different = reports.filter(({ found }) => found?.digest !== newest.digest);
  if (different.length === 0 && offered === newest.digest)
    return { status: 'True', reason: 'CopiesEqual', message: `content ${offered}`, wanted };
  const named = different
    .map(({ master, found }) => `${master} ${found === undefined ? 'has none' : `has ${short(found.digest)}`}`)
    .sort();
  const to = named.length === 0 ? '' : `: ${firstOf(named)}`;
  const message = `${content}; the other masters take ${short(newest.digest)}${to}`;
  return { status: 'False', reason: 'CopiesDiffer', message, wanted };
}

const reasonOf = (offered: string | undefined) =>
  offered === undefined ? ({ reason: 'CopiesDiffer' } as const) : ({ reason: 'CopiesEqual' } as const);

const short = (digest: string): string => digest.slice(0, SHOWN);

const mastersWith = (digest: string, reports: readonly CopyReport[]): string[] =>
  reports.flatMap(({ master, found }) => (found?.digest === digest ? [master] : [])).sort();

function firstOf(named: readonly string[]): string {
  const more = named.length > MAX_NAMED ? ` and ${named.length - MAX_NAMED} more` : '';
  return `${named.slice(0, MAX_NAMED).join(', ')}${more}`;
}

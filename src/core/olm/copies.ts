/** Whether the masters have the same copy of a catalog's directory. */

export interface CopyReport {
  readonly master: string;
  /** By name of the directory; undefined: the host reports no catalogs, as nodes do. */
  readonly digests: ReadonlyMap<string, string> | undefined;
}

export interface Copies {
  readonly status: 'True' | 'False';
  readonly reason: 'CopiesEqual' | 'CopiesDiffer';
  readonly message: string;
}

const MAX_NAMED = 10;
const SHOWN = 'sha256:'.length + 12;

/** `digest`: of the copy that is offered. */
export function copiesOf(name: string, digest: string, reports: readonly CopyReport[]): Copies {
  const different = reports
    .flatMap(({ master, digests }) => {
      const found = digests?.get(name);
      if (digests === undefined || found === digest) return [];
      return [`${master} ${found === undefined ? 'has none' : `has ${found.slice(0, SHOWN)}`}`];
    })
    .sort();
  if (different.length === 0) return { status: 'True', reason: 'CopiesEqual', message: `content ${digest}` };
  const named = different.slice(0, MAX_NAMED).join(', ');
  const more = different.length > MAX_NAMED ? ` and ${different.length - MAX_NAMED} more` : '';
  return {
    status: 'False',
    reason: 'CopiesDiffer',
    message: `content ${digest} is offered; copy it to the other masters: ${named}${more}`,
  };
}

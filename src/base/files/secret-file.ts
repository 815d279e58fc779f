/**
 * Permission rules for files with private material, such as a key, a kubeconfig or a token. Every reader of such a file
 * applies these rules.
 */

/** Fields of stat(2). */
export interface FileOwnership {
  readonly mode: number;
  readonly uid: number;
}

const OTHERS = 0o077;

/** The problem and the command that fixes it; undefined if only root and the user `own` have access. */
export function secretFileProblem(path: string, { mode, uid }: FileOwnership, own: number): string | undefined {
  if (uid !== 0 && uid !== own) return `${path}: private material that belongs to uid ${uid}; run chown ${own} ${path}`;
  if ((mode & OTHERS) === 0) return undefined;
  const who = (mode & 0o007) === 0 ? 'its group' : 'every user';
  const what = (mode & 0o022) === 0 ? 'read' : (mode & 0o044) === 0 ? 'write' : 'read and write';
  return `${path}: private material that ${who} can ${what}; run chmod 0600 ${path}`;
}

/**
 * Like `secretFileProblem`, for a directory. `others`: permission bits that other users must not have. 0o077 is for
 * private directories, 0o022 for directories that others may read but not change.
 */
export function directoryProblem(
  path: string,
  { mode, uid }: FileOwnership,
  own: number,
  others: 0o077 | 0o022,
): string | undefined {
  if (uid !== 0 && uid !== own)
    return `${path}: directory of private material that belongs to uid ${uid}; run chown ${own} ${path}`;
  if ((mode & others) === 0) return undefined;
  const what = others === 0o077 ? 'have access to' : 'can write';
  return `${path}: directory of private material that others ${what}; run chmod ${others === 0o077 ? '0700' : 'go-w'} ${path}`;
}

/**
 * Calls back for each change of a file, or of a name in a directory; without a name when it is not known which one.
 * Throws when the path does not exist. `names`: entries that come and go are enough, changes of their content are not
 * needed.
 */
export type WatchPath = (
  path: string,
  listener: (name: string | undefined) => void,
  options?: { readonly names?: boolean },
) => { close(): void };

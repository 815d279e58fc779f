/**
 * Calls the listener for each change of a file, or of an entry in a directory; with the entry's name if it is known.
 * `names`: whether only additions and removals of entries are reported, not changes of their content. Throws if the
 * path does not exist.
 */
export type WatchPath = (
  path: string,
  listener: (name: string | undefined) => void,
  options?: { readonly names?: boolean },
) => { close(): void };

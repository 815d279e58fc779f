/**
 * Calls the listener for each change of a file, or of an entry in a directory, with the entry's name if it is known.
 * Throws if the path does not exist. `names`: only added and removed entries are needed, not changes of their content.
 */
export type WatchPath = (
  path: string,
  listener: (name: string | undefined) => void,
  options?: { readonly names?: boolean },
) => { close(): void };

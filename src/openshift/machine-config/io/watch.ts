/** Detects changes of files by inotify on their directories. */
import { basename, dirname, join } from 'node:path';
import type { WatchPath } from '../../../base/path-watch-port.ts';

/**
 * Calls the listener for each changed name in the directory, with undefined if the kernel reports none. Returns
 * undefined if the directory does not exist.
 */
export type DirectoryWatch = (
  directory: string,
  listener: (name: string | undefined) => void,
) => { close(): void } | undefined;

/** Delay that combines the events of one replaced file into one call. */
const COALESCE_MS = 20;

export function createDirectoryWatch(root: string, watchPath: WatchPath): DirectoryWatch {
  return (directory, listener) => {
    try {
      return watchPath(join(root, directory), listener);
    } catch {
      return undefined;
    }
  };
}

/**
 * Calls the listener once for changes that come together. A missing directory is detected in its nearest existing
 * parent.
 */
export function watchPaths(watchDirectory: DirectoryWatch, paths: readonly string[], listener: () => void): () => void {
  let pending: NodeJS.Timeout | undefined;
  const open = new Map<string, { names: Set<string>; close: () => void }>();
  const changed = (): void => {
    pending ??= setTimeout(() => {
      pending = undefined;
      // A deleted or created directory changes the set of watched directories.
      closeAll();
      openAll();
      listener();
    }, COALESCE_MS).unref();
  };
  const watchOne = (path: string): void => {
    // The directory's own name is watched too, because deleting the directory ends its watch.
    for (let at = path; at !== '/'; at = dirname(at)) {
      const directory = dirname(at);
      const present = open.get(directory);
      if (present !== undefined) {
        present.names.add(basename(at));
        continue;
      }
      const names = new Set([basename(at)]);
      const watcher = watchDirectory(directory, (name) => {
        if (name === undefined || names.has(name)) changed();
      });
      if (watcher === undefined) continue;
      open.set(directory, { names, close: () => watcher.close() });
    }
  };
  const closeAll = (): void => {
    for (const each of open.values()) each.close();
    open.clear();
  };
  const openAll = (): void => {
    for (const path of paths) watchOne(path);
  };
  openAll();
  return () => {
    if (pending !== undefined) clearTimeout(pending);
    closeAll();
  };
}

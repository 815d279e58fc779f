/** Detects changes of files through inotify watches of their directories. */
import { basename, dirname, join } from 'node:path';
import type { WatchPath } from '../../../base/files/path-watch-port.ts';

/**
 * Watches a directory. Calls the listener for each entry that changes, or with undefined if the kernel does not report
 * the name. Returns undefined if the directory does not exist.
 */
export type DirectoryWatch = (
  directory: string,
  listener: (name: string | undefined) => void,
) => { close(): void } | undefined;

/** Delay before the listener is called, so that the events of one replaced file result in one call. */
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
 * Watches files and calls the listener once for changes that occur together. While a directory is missing, its nearest
 * existing parent is watched.
 */
export function watchPaths(watchDirectory: DirectoryWatch, paths: readonly string[], listener: () => void): () => void {
  let pending: NodeJS.Timeout | undefined;
  const open = new Map<string, { names: Set<string>; close: () => void }>();
  const changed = (): void => {
    pending ??= setTimeout(() => {
      pending = undefined;
      // If a directory was deleted or created, other directories must be watched, so all watches are set up again.
      closeAll();
      openAll();
      listener();
    }, COALESCE_MS).unref();
  };
  const watchOne = (path: string): void => {
    // Watch the names of all parent directories too, because the watch of a deleted directory ends.
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

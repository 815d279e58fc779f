/** Notices changes of files by inotify on their directories; costs nothing while there are none. */
import { basename, dirname, join } from 'node:path';
import type { WatchPath } from '../host/watch-port.ts';

/**
 * Calls for each changed name in the directory, with undefined when the kernel gives none. Undefined: there is no such
 * directory.
 */
export type DirectoryWatch = (
  directory: string,
  listener: (name: string | undefined) => void,
) => { close(): void } | undefined;

/** Replacing a file makes several events. */
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

/** Calls once for changes that come together. A directory that is missing is noticed in its nearest parent. */
export function watchPaths(watchDirectory: DirectoryWatch, paths: readonly string[], listener: () => void): () => void {
  let pending: NodeJS.Timeout | undefined;
  const open = new Map<string, { names: Set<string>; close: () => void }>();
  const changed = (): void => {
    pending ??= setTimeout(() => {
      pending = undefined;
      // A directory that was deleted, or made, moves the watches.
      closeAll();
      openAll();
      listener();
    }, COALESCE_MS).unref();
  };
  const watchOne = (path: string): void => {
    // The directory's own name is watched too: with it the watch ends.
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

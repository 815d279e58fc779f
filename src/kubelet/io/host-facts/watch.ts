import { type BigIntStats, type FSWatcher, watch } from 'node:fs';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../../base/errors.ts';
import type { WatchPath } from '../../../base/files/path-watch-port.ts';
import type { Log } from '../../../base/log.ts';
import type { FileWatch } from '../../port.ts';

/** Editors and atomic replacements cause bursts of events, which are combined into one call. */
const COALESCE_MS = 10;
const POLL_MS = 1_000;
const POLL_NAMES_MS = 100;
/**
 * Inotify limits per user, with the values of OpenShift nodes. The root users of all containers share the limits of the
 * host's root.
 */
const LIMITS = { max_user_instances: 8_192, max_user_watches: 65_536 } as const;

/** Raises the limits of inotify if they are lower. If that is not permitted, watches fall back to polling. */
export async function raiseWatchLimits(log: Log, directory = '/proc/sys/fs/inotify'): Promise<void> {
  for (const [name, wanted] of Object.entries(LIMITS)) {
    const path = join(directory, name);
    try {
      if (Number(await readFile(path, 'utf8')) < wanted) await writeFile(path, String(wanted));
    } catch (error) {
      log.info('limit of inotify not raised', { setting: `fs.inotify.${name}`, wanted, error: messageOf(error) });
    }
  }
}

/** Uses inotify through `fs.watch`, and polling while the user's inotify limits are exhausted. */
export const watchPath: WatchPath = (path, listener, options = {}) => {
  const notify = (name: string | null): void => listener(name ?? undefined);
  let polling: { close(): void } | undefined;
  const watcher = openWatcher(path, notify);
  watcher?.on('error', (error) => {
    watcher.close();
    if (isUsedUp(error)) polling ??= poll(path, listener, options);
  });
  if (watcher === undefined) polling = poll(path, listener, options);
  return {
    close() {
      watcher?.close();
      polling?.close();
    },
  };
};

/** Returns undefined if the inotify limits are exhausted. */
function openWatcher(path: string, notify: (name: string | null) => void): FSWatcher | undefined {
  try {
    return watch(path, { persistent: false }, (_event, name) => notify(name));
  } catch (error) {
    if (isUsedUp(error)) return undefined;
    throw error;
  }
}

/** EMFILE: no instance is left; ENOSPC: no watch is left. */
function isUsedUp(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'EMFILE' || code === 'ENFILE' || code === 'ENOSPC';
}

function poll(
  path: string,
  listener: (name: string | undefined) => void,
  { names = false }: { readonly names?: boolean },
): { close(): void } {
  let seen: PathState | undefined;
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;
  const next = (): void => {
    timer = setTimeout(() => void check(), names ? POLL_NAMES_MS : POLL_MS).unref();
  };
  const check = async (): Promise<void> => {
    const found = await readPathState(path, names, seen);
    if (isClosed) return;
    if (seen !== undefined && found !== seen) for (const name of differences(seen, found)) listener(name);
    seen = found;
    next();
  };
  void check();
  return {
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

interface PathState {
  readonly stamp: string;
  /**
   * Whether a second check found the same time stamp. Until then the names are read again, because the directory may
   * have changed again within one clock tick of the file system.
   */
  readonly isSettled: boolean;
  /** Time stamps by name; undefined if the path is not a directory. */
  readonly names: ReadonlyMap<string, string> | undefined;
}

const stampOf = ({ ino, size, mtimeNs, ctimeNs }: BigIntStats): string => `${ino}:${size}:${mtimeNs}:${ctimeNs}`;

const stampAt = (path: string): Promise<string> => stat(path, { bigint: true }).then(stampOf, () => '');

async function readPathState(path: string, namesOnly: boolean, before: PathState | undefined): Promise<PathState> {
  const stamp = await stampAt(path);
  if (namesOnly && before?.stamp === stamp && before.isSettled) return before;
  const entries = await readdir(path).catch(() => undefined);
  const isSettled = before?.stamp === stamp;
  if (entries === undefined) return { stamp, isSettled, names: undefined };
  const names = new Map<string, string>();
  for (const name of entries) names.set(name, namesOnly ? '' : await stampAt(join(path, name)));
  return { stamp, isSettled, names };
}

/** Changed names; undefined stands for the path itself. */
function differences(before: PathState, now: PathState): (string | undefined)[] {
  if (before.names === undefined || now.names === undefined) return before.stamp === now.stamp ? [] : [undefined];
  const all = new Set([...before.names.keys(), ...now.names.keys()]);
  return [...all].filter((name) => before.names?.get(name) !== now.names?.get(name));
}

/** A path that does not exist causes no events, so callers must also check periodically. */
export function createFileWatch(): FileWatch {
  return {
    watch(path, listener) {
      let pending: NodeJS.Timeout | undefined;
      let watcher: { close(): void } | undefined;
      try {
        watcher = watchPath(path, () => {
          pending ??= setTimeout(() => {
            pending = undefined;
            listener();
          }, COALESCE_MS);
        });
      } catch {
        watcher = undefined;
      }
      return {
        close() {
          watcher?.close();
          if (pending !== undefined) clearTimeout(pending);
        },
      };
    },
  };
}

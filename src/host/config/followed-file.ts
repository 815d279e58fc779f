/** Configuration files that are reloaded on change. An invalid file is logged and not used. */
import { readFile, stat } from 'node:fs/promises';
import type { Followed, Reloads } from '../../apiserver/index.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';

/** Interval between checks for a changed file. */
const POLL_MS = 2_000;
/**
 * Limit of a file's age below which it is read again although its time stamps are unchanged: two writes within the
 * resolution of the time stamps have the same time.
 */
const FRESH_MS = 5_000;

export interface FollowedFile<T> extends Followed<T> {
  readonly reloads: Reloads;
  /** Checks the file immediately. */
  refresh(): Promise<void>;
  stop(): void;
}

/**
 * Reads and parses a file, and repeats both whenever its text changes. Rejects if the first text is unreadable or
 * invalid; later, the previous value remains in use. `what`: name of the configuration in the log. `first`: performs
 * the first read.
 */
export async function followFile<T>(
  file: string,
  options: {
    readonly what: string;
    readonly log: Log;
    readonly first: () => Promise<string>;
    /** Function for later reads; reads the file by default. */
    readonly read?: () => Promise<string>;
    /** Files whose change causes another read; by default, the file itself. If empty, every check reads. */
    readonly files?: readonly string[];
    readonly parse: (text: string) => T | Promise<T>;
    /** Called when the value has changed. */
    readonly changed?: () => void;
  },
): Promise<FollowedFile<T>> {
  const { what, log, parse } = options;
  let text = await options.first();
  let current = await parse(text);
  let complained = '';
  const reloads: Record<'success' | 'failure', Reloads['success']> = { success: undefined, failure: undefined };
  const note = (status: keyof typeof reloads): void => {
    reloads[status] = { count: (reloads[status]?.count ?? 0) + 1, lastMs: Date.now() };
  };
  const refresh = async (): Promise<void> => {
    try {
      const now = await (options.read?.() ?? readFile(file, 'utf8'));
      if (now === text) return;
      current = await parse(now);
      text = now;
      complained = '';
      note('success');
      log.info(`${what} configuration reloaded`, { file });
      options.changed?.();
    } catch (error) {
      const message = messageOf(error);
      if (message !== complained) {
        note('failure');
        log.error(`${what} configuration not reloaded; using the previous one`, { error: message });
      }
      complained = message;
    }
  };
  let looking = false;
  let seen = '';
  const refreshChanged = async (): Promise<void> => {
    const found = await stateOf(options.files ?? [file]);
    if (found !== undefined && found === seen) return;
    await refresh();
    seen = complained === '' ? (found ?? '') : '';
  };
  const timer = setInterval(() => {
    if (looking) return;
    looking = true;
    refreshChanged().finally(() => {
      looking = false;
    });
  }, POLL_MS);
  timer.unref();
  return {
    get current(): T {
      return current;
    },
    get reloads(): Reloads {
      return { text, ...reloads };
    },
    refresh,
    stop: () => clearInterval(timer),
  };
}

/**
 * Inodes, sizes and times of the files; undefined if the files must be read because one is missing or was written
 * recently.
 */
async function stateOf(files: readonly string[]): Promise<string | undefined> {
  if (files.length === 0) return undefined;
  const states = await Promise.all(files.map((each) => stat(each).catch(() => undefined)));
  const present = states.filter((each) => each !== undefined);
  const newest = Math.max(...present.map(({ ctimeMs }) => ctimeMs));
  if (present.length < files.length || Math.abs(Date.now() - newest) < FRESH_MS) return undefined;
  return present.map(({ dev, ino, size, mtimeMs, ctimeMs }) => [dev, ino, size, mtimeMs, ctimeMs].join(' ')).join();
}

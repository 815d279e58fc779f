/** Configuration that is followed while the server runs. A file that turns bad changes nothing but the log. */
import { readFile } from 'node:fs/promises';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Followed, Reloads } from '../../components/apiserver/index.ts';

/** How soon a changed file is noticed. */
const LOOK_MS = 2_000;

export interface FollowedFile<T> extends Followed<T> {
  readonly reloads: Reloads;
  /** Looks now. */
  refresh(): Promise<void>;
  stop(): void;
}

/**
 * What `parse` makes of a file, anew whenever its text is another. `what` is how the log calls it. Rejects when the file cannot be
 * understood now. `first`: reads it the first time; later a file that cannot be read is a file that turned bad.
 */
export async function followFile<T>(
  file: string,
  options: {
    readonly what: string;
    readonly log: Log;
    readonly first: () => Promise<string>;
    /** Reads it later; default: the file. */
    readonly read?: () => Promise<string>;
    readonly parse: (text: string) => T | Promise<T>;
    /** Called when it is another. */
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
      log.info(`${what} configuration read anew`, { file });
      options.changed?.();
    } catch (error) {
      const message = messageOf(error);
      if (message !== complained) {
        note('failure');
        log.error(`${what} configuration is kept as it was`, { error: message });
      }
      complained = message;
    }
  };
  let looking = false;
  const timer = setInterval(() => {
    if (looking) return;
    looking = true;
    refresh().finally(() => {
      looking = false;
    });
  }, LOOK_MS);
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

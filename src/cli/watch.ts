/** `--watch`: repeats a report. On a terminal the report is redrawn in place; otherwise each report is appended. */
import { UsageError } from './command.ts';

const DEFAULT_MS = 2000;
const MAX_SECONDS = 3600;

/** Control sequences of ECMA-48 and xterm. */
const ESCAPE = '\u001B[';
const HIDE_CURSOR = `${ESCAPE}?25l`;
const SHOW_CURSOR = `${ESCAPE}?25h`;
/** Disables line wrapping, so that each line of a frame is one row and the cursor can return to the first row. */
const NO_WRAP = `${ESCAPE}?7l`;
const WRAP = `${ESCAPE}?7h`;
const ERASE_LINE = `${ESCAPE}K`;
const ERASE_BELOW = `${ESCAPE}J`;

/** Milliseconds of an interval such as `5`, `5s` or `1m`. Throws UsageError for another form. */
export function watchInterval(text: string | undefined): number {
  if (text === undefined) return DEFAULT_MS;
  const [, digits = '', unit = 's'] = /^(\d{1,4})([sm]?)$/.exec(text) ?? [];
  const seconds = Number(digits) * (unit === 'm' ? 60 : 1);
  if (seconds < 1 || seconds > MAX_SECONDS)
    throw new UsageError(`--watch ${text}: give an interval from 1 to ${MAX_SECONDS} seconds, such as 5`);
  return seconds * 1000;
}

export interface WatchOptions {
  readonly write: (text: string) => void;
  /** Rows of the terminal; undefined if the output is not a terminal. */
  readonly rows: () => number | undefined;
  readonly intervalMs: number;
  /** Resolves after the time has passed, or early when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Ends the watch when it aborts. */
  readonly signal: AbortSignal;
}

/** Shows frames until the signal aborts. The cursor and wrapping are restored in any case. */
export async function watchFrames(frame: () => Promise<string>, options: WatchOptions): Promise<void> {
  const { write, rows, intervalMs, sleep, signal } = options;
  const terminal = rows() !== undefined;
  let drawn = 0;
  let first = true;
  if (terminal) write(`${HIDE_CURSOR}${NO_WRAP}`);
  try {
    while (!signal.aborted) {
      const text = await frame();
      if (signal.aborted) break;
      if (terminal) {
        const lines = fitted(text, rows() ?? 0);
        // The whole frame is written at once, so that the terminal never shows an empty frame.
        const up = drawn === 0 ? '' : `${ESCAPE}${drawn}A`;
        write(`${up}\r${lines.map((line) => `${line}${ERASE_LINE}\n`).join('')}${ERASE_BELOW}`);
        drawn = lines.length;
      } else write(`${first ? '' : '\n'}${text}`);
      first = false;
      await sleep(intervalMs, signal);
    }
  } finally {
    if (terminal) write(`${WRAP}${SHOW_CURSOR}`);
  }
}

/** The lines that fit above the last row, which contains the cursor. */
function fitted(text: string, rows: number): string[] {
  const lines = text.replace(/\n$/, '').split('\n');
  const room = Math.max(2, rows - 1);
  if (rows <= 0 || lines.length <= room) return lines;
  return [...lines.slice(0, room - 1), `… ${lines.length - room + 1} more lines`];
}

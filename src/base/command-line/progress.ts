/**
 * Progress of long operations: completed steps, and transfers with amount, rate and remaining time. On a terminal, a
 * transfer is one line that is redrawn. Elsewhere, it is one line that is printed at its end. See
 * docs/decisions/0023-progress-without-a-library.md.
 */

import { bytesText } from '../text/bytes-text.ts';

export interface Progress {
  /** Reports a completed step with the time since the start. */
  step(text: string): void;
  /** Prints a note without a time. */
  note(text: string): void;
  /** Prints a note on a terminal only. */
  summary(text: string): void;
  /** Begins to show a transfer. Only one may be shown at a time. */
  transfer(title: string, unit?: Unit): Transfer;
}

export type Unit = 'bytes' | 'keys' | 'layers' | 'pods' | 'sections' | 'entries';

export interface Transfer {
  /** Reports the amount that is done. `total` is 0 while it is unknown. */
  update(done: number, total: number): void;
  /** Reports that the transfer is complete. */
  end(): void;
  /** Removes the line of a failed transfer. */
  abandon(): void;
}

export interface ProgressOptions {
  readonly write: (text: string) => void;
  /** Whether the output is a terminal that interprets control sequences. */
  readonly terminal: boolean;
  readonly nowMs: () => number;
  /** Columns of the terminal. Default: 80. */
  readonly columns?: () => number | undefined;
  /** Whether the mark of a completed step is coloured. Default: the value of `terminal`. */
  readonly colours?: boolean;
  /** Whether nothing is printed. */
  readonly quiet?: boolean;
}

const ERASE = '\r\u001B[K';
const REDRAW_MS = 100;
/** Period over which a rate is measured. It is short, so that the rate follows a network that becomes slower. */
const WINDOW_MS = 10_000;
const SAMPLE_MS = 500;
/** Time before which no rate is shown, because it would be too inaccurate. */
const MEASURED_MS = 1000;

export function createProgress(options: ProgressOptions): Progress {
  if (options.quiet === true) return QUIET;
  const { write, terminal, nowMs, colours = terminal } = options;
  const begin = nowMs();
  let line = '';
  const clear = (): string => (line === '' ? '' : ERASE);
  const seconds = (): string => `${((nowMs() - begin) / 1000).toFixed(2)} s`;
  const mark = colours ? '\u001b[32m✔\u001b[0m' : '✔';
  /** Prints a line above the line of the current transfer. */
  const print = (text: string): void => write(`${clear()}${text}\n${line}`);
  return {
    step: (text) => print(terminal ? `${mark} ${seconds().padStart(8)}  ${text}` : `${text} after ${seconds()}`),
    note: (text) => print(terminal ? `            ${text}` : text),
    summary: (text) => {
      if (terminal) print(`            ${text}`);
    },
    transfer: (title, unit = 'bytes') =>
      showTransfer(title, unit, {
        nowMs,
        draw: (text) => {
          if (!terminal) return;
          // The line is truncated to the width of the terminal, because a wrapped line cannot be redrawn.
          const room = Math.max(20, (options.columns?.() ?? 80) - 1);
          const shown = [...text].length <= room ? text : `${[...text].slice(0, room - 1).join('')}…`;
          write(`${ERASE}${shown}`);
          line = shown;
        },
        finish: (text) => {
          const before = clear();
          line = '';
          if (text !== undefined) write(`${before}${text}\n`);
          else if (before !== '') write(before);
        },
      }),
  };
}

interface TransferOutput {
  readonly nowMs: () => number;
  readonly draw: (text: string) => void;
  /** Ends the transfer with a line of this text; if it is undefined, only removes the transfer's line. */
  readonly finish: (text: string | undefined) => void;
}

function showTransfer(title: string, unit: Unit, { nowMs, draw, finish }: TransferOutput): Transfer {
  const begin = nowMs();
  const samples: { readonly atMs: number; readonly done: number }[] = [{ atMs: begin, done: 0 }];
  let done = 0;
  let drawnMs = Number.NEGATIVE_INFINITY;
  const rateOf = (now: number): number | undefined => {
    const oldest = samples[0] ?? { atMs: begin, done: 0 };
    const ms = now - oldest.atMs;
    return now - begin < MEASURED_MS || ms <= 0 ? undefined : ((done - oldest.done) * 1000) / ms;
  };
  return {
    update: (amount, total) => {
      const now = nowMs();
      done = amount;
      if (now - (samples.at(-1)?.atMs ?? begin) >= SAMPLE_MS) samples.push({ atMs: now, done });
      while (samples.length > 1 && now - (samples[0]?.atMs ?? now) > WINDOW_MS) samples.shift();
      if (now - drawnMs < REDRAW_MS) return;
      drawnMs = now;
      draw(lineOf(title, unit, { done, total, rate: rateOf(now) }));
    },
    end: () => {
      const ms = nowMs() - begin;
      const rate = unit === 'bytes' && ms >= MEASURED_MS ? ` (${amountText((done * 1000) / ms, unit)}/s)` : '';
      finish(`${title}: ${amountText(done, unit)} in ${(ms / 1000).toFixed(1)} s${rate}`);
    },
    abandon: () => finish(undefined),
  };
}

interface Measured {
  readonly done: number;
  readonly total: number;
  /** Units per second; undefined before it is measured. */
  readonly rate: number | undefined;
}

function lineOf(title: string, unit: Unit, { done, total, rate }: Measured): string {
  const share =
    total > 0 ? ` of ${amountText(total, unit)} (${Math.min(100, Math.floor((done * 100) / total))} %)` : '';
  const speed = rate === undefined || unit !== 'bytes' ? '' : `, ${amountText(rate, unit)}/s`;
  const isOpen = total > done && rate !== undefined && rate > 0;
  const left = isOpen ? `, ${durationText((total - done) / rate)} left` : '';
  return `${title}: ${amountText(done, unit)}${share}${speed}${left}`;
}

const amountText = (amount: number, unit: Unit): string =>
  unit === 'bytes' ? bytesText(amount) : `${Math.round(amount)} ${unit}`;

/** Seconds as `45 s`, `3 min 20 s` or `2 h 5 min`. */
function durationText(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

const nothing = (): void => undefined;
const QUIET: Progress = {
  step: nothing,
  note: nothing,
  summary: nothing,
  transfer: () => ({ update: nothing, end: nothing, abandon: nothing }),
};

export type OnProgress = (done: number, total: number) => void;

/** Shows a transfer while `work` runs. */
export async function transferring<T>(
  progress: Progress,
  title: string,
  work: (onProgress: OnProgress) => Promise<T>,
  unit: Unit = 'bytes',
): Promise<T> {
  const transfer = progress.transfer(title, unit);
  try {
    const result = await work(transfer.update);
    transfer.end();
    return result;
  } catch (error) {
    transfer.abandon();
    throw error;
  }
}

/** Shows amounts while `work` runs and removes the line at the end. The caller prints the result as a step. */
export async function counting<T>(
  progress: Progress,
  title: string,
  unit: Unit,
  work: (onProgress: OnProgress) => Promise<T>,
): Promise<T> {
  const transfer = progress.transfer(title, unit);
  try {
    return await work(transfer.update);
  } finally {
    transfer.abandon();
  }
}

/** Yields the chunks of `content` and calls `onBytes` with the length of each chunk. */
export async function* counted(
  content: AsyncIterable<Uint8Array>,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of content) {
    onBytes(chunk.length);
    yield chunk;
  }
}

/** Returns a function that adds amounts and reports the sum to `onProgress`. */
export function adding(total: number, onProgress: OnProgress | undefined): (amount: number) => void {
  let done = 0;
  return (amount) => {
    done += amount;
    onProgress?.(done, total);
  };
}

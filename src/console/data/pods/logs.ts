/**
 * Converts logs of a container to lines of safe text. Terminal control sequences are removed; other control characters
 * and characters that change the text direction are made visible; long lines are truncated.
 */

import { ApiError } from '../../../api/meta/status.ts';
import type { Clock, RandomSource } from '../../../base/time/clock.ts';
import { Backoff } from '../../../client/backoff.ts';
import { query } from '../../../client/resource-path.ts';
import type { Api } from '../api/api.ts';
import { sanitizeText } from '../plain-text.ts';
import { LineSplitter } from '../watch/lines.ts';

const MAX_LINE = 16_384;
const MAX_LINES = 20_000;
const MAX_CHARACTERS = 8 << 20;

export type LogLevel = 'error' | 'warning' | 'info' | 'debug' | 'none';

export interface LogLine {
  /** Number of the line since the start of the stream. */
  readonly number: number;
  readonly time: string;
  readonly text: string;
  readonly level: LogLevel;
}

const LEVELS: readonly (readonly [LogLevel, RegExp])[] = [
  [
    'error',
    /\b(?:ERROR|ERR|FATAL|CRIT(?:ICAL)?|PANIC|panic:|Exception|Traceback)\b|"?level"?[=:]\s*"?(?:error|fatal|panic)|^E\d{4} |\berror\b/,
  ],
  ['warning', /\b(?:WARN(?:ING)?)\b|"?level"?[=:]\s*"?warn|^W\d{4} |\bwarning\b/],
  ['debug', /\b(?:DEBUG|TRACE)\b|"?level"?[=:]\s*"?(?:debug|trace)/],
  ['info', /\bINFO\b|"?level"?[=:]\s*"?info|^I\d{4} /],
];

/** Level of a line. Only the beginning of the line is searched, so that long lines cost little. */
export function levelOf(text: string): LogLevel {
  const head = text.slice(0, 200);
  return LEVELS.find(([, pattern]) => pattern.test(head))?.[0] ?? 'none';
}

/** The newest lines of a log, limited in number and size. */
export class LogBuffer {
  #lines: LogLine[] = [];
  #characters = 0;
  #count = 0;

  get lines(): readonly LogLine[] {
    return this.#lines;
  }

  /** Number of lines that were dropped because of the limits. */
  get dropped(): number {
    return this.#count - this.#lines.length;
  }

  push(raw: readonly string[]): void {
    for (const line of raw) {
      const [time, rest] = timeAndText(line);
      const text = sanitizeText(rest);
      this.#lines.push({ number: ++this.#count, time, text, level: levelOf(text) });
      this.#characters += text.length;
    }
    let drop = Math.max(0, this.#lines.length - MAX_LINES);
    for (let index = 0; index < drop; index++) this.#characters -= this.#lines[index]?.text.length ?? 0;
    while (this.#characters > MAX_CHARACTERS && drop < this.#lines.length)
      this.#characters -= this.#lines[drop++]?.text.length ?? 0;
    if (drop > 0) this.#lines = this.#lines.slice(drop);
  }

  clear(): void {
    this.#lines = [];
    this.#characters = 0;
    this.#count = 0;
  }
}

/** Splits a line into the timestamp of `timestamps=true` and the text. */
function timeAndText(line: string): [time: string, text: string] {
  const match = /^(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)) ?/.exec(line);
  return match === null ? ['', line] : [match[1] ?? '', line.slice(match[0].length)];
}

export interface LogTarget {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly previous?: boolean;
  readonly tailLines?: number;
}

export interface LogStreamContext {
  readonly api: Api;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly onLines: (lines: readonly string[]) => void;
  readonly onState: (state: 'open' | 'ended' | 'retrying', error?: ApiError) => void;
}

export function logPath(target: LogTarget, options: Readonly<Record<string, string | number | boolean>>): string {
  const { namespace, pod, container, previous } = target;
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}/log`;
  return path + query({ container, previous: previous === true ? true : undefined, timestamps: true, ...options });
}

/**
 * Follows a log until the signal aborts or the container ends. After a broken stream, the log is read again from the
 * second of the last line, and lines that were delivered already are skipped.
 */
export async function followLog(target: LogTarget, context: LogStreamContext, signal: AbortSignal): Promise<void> {
  const { api, clock, random, onLines, onState } = context;
  const backoff = new Backoff({ initialMs: 500, maxMs: 15_000, jitter: 0.5 }, random);
  let lastTime = '';
  while (!signal.aborted) {
    const resumedFrom = lastTime;
    try {
      const since: Record<string, string | number> =
        resumedFrom === '' ? { tailLines: target.tailLines ?? 1_000 } : { sinceTime: resumedFrom };
      const response = await api.open(logPath(target, { follow: target.previous !== true, ...since }), { signal });
      onState('open');
      await readLines(response, signal, (lines) => {
        backoff.reset();
        const fresh = resumedFrom === '' ? lines : lines.filter((line) => timeAndText(line)[0] > resumedFrom);
        const last = timeAndText(fresh.at(-1) ?? '')[0];
        if (last !== '') lastTime = last;
        if (fresh.length > 0) onLines(fresh);
      });
      if (!signal.aborted) onState('ended');
      return;
    } catch (error) {
      if (signal.aborted) return;
      const failure = error instanceof ApiError ? error : new ApiError('ServiceUnavailable', 'the log stream broke');
      if (failure.httpCode < 500 && failure.httpCode !== 429) {
        onState('ended', failure);
        return;
      }
      onState('retrying', failure);
    }
    await new Promise<void>((resolve) => {
      const timer = clock.setTimer(backoff.next(), resolve);
      const end = (): void => {
        timer.cancel();
        resolve();
      };
      signal.addEventListener('abort', end, { once: true });
    });
  }
}

/** The last lines of a log as safe text, without their times. */
export async function lastLines(
  api: Api,
  target: LogTarget,
  count: number,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const response = await api.open(logPath(target, { tailLines: count }), { signal });
  const found: string[] = [];
  await readLines(response, signal, (lines) => found.push(...lines.map((line) => sanitizeText(timeAndText(line)[1]))));
  return found.slice(-count);
}

async function readLines(
  response: Response,
  signal: AbortSignal,
  onLines: (lines: readonly string[]) => void,
): Promise<void> {
  const reader = response.body?.getReader();
  if (reader === undefined) return;
  const splitter = new LineSplitter(MAX_LINE, 'cut');
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || signal.aborted) break;
      const lines = splitter.push(value);
      if (lines.length > 0) onLines(lines);
    }
    const rest = splitter.end();
    if (rest !== undefined && !signal.aborted) onLines([rest]);
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

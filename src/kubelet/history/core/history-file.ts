/**
 * Content of a history file: the samples of one period of the level with the longest retention. Layout: the length of
 * the header, a JSON header, and the codes of all blocks. Files are not trusted: every field is validated.
 */
import { BLOCK_SLOTS, LONG_LEVEL, periodOf, slotOf } from './levels.ts';
import { METRICS, SCOPES, type Scope } from './metrics.ts';
import type { Identity, SavedBlock, Series } from './series.ts';
import type { SavedTimeline } from './timeline.ts';

export const FILE_VERSION = 1;
const LENGTH_BYTES = 4;
const MAX_SAVED_SERIES = 4_000;
const MAX_NAME = 253;
const MAX_TIME_MS = 1e14;
const MAX_SEGMENTS = 64;
const CONSTANT_CODES = 2;

export interface SavedColumn extends SavedBlock {
  readonly metric: string;
  readonly isPeak: boolean;
}

export interface SavedSeries {
  readonly identity: Identity;
  readonly lastSeenMs: number;
  readonly columns: readonly SavedColumn[];
}

export interface HistoryFile {
  readonly period: number;
  readonly timeline: SavedTimeline;
  readonly series: readonly SavedSeries[];
}

/** `metric`, 1 for a peak, smallest value, largest value, number of codes. */
type ColumnHeader = readonly [string, 0 | 1, number, number, number];

/** Collects the samples of a period. Series without samples in the period are omitted. */
export function historyFileOf(all: Iterable<Series>, period: number, timeline: SavedTimeline): HistoryFile {
  const series: SavedSeries[] = [];
  for (const each of all) {
    const columns = each.metrics.flatMap(({ name }, metric) => [
      ...columnOf(each, metric, name, { isPeak: false }, period),
      ...columnOf(each, each.peakColumn(metric), name, { isPeak: true }, period),
    ]);
    if (columns.length > 0) series.push({ identity: each.identity, lastSeenMs: each.lastSeenMs, columns });
  }
  return { period, timeline, series };
}

function columnOf(
  series: Series,
  column: number,
  metric: string,
  { isPeak }: { readonly isPeak: boolean },
  period: number,
): SavedColumn[] {
  const block = column < 0 ? undefined : series.save(column, LONG_LEVEL, period);
  return block === undefined ? [] : [{ ...block, metric, isPeak }];
}

export function encodeHistoryFile({ period, timeline, series }: HistoryFile): Uint8Array {
  const header = new TextEncoder().encode(
    JSON.stringify({
      version: FILE_VERSION,
      period,
      timeline,
      series: series.map(({ identity, lastSeenMs, columns }) => ({
        identity,
        lastSeenMs,
        columns: columns.map(
          ({ metric, isPeak, low, high, codes }): ColumnHeader => [metric, isPeak ? 1 : 0, low, high, codes.length],
        ),
      })),
    }),
  );
  const blocks = series.flatMap(({ columns }) => columns.map(({ codes }) => codes));
  const size = blocks.reduce((sum, { length }) => sum + length, LENGTH_BYTES + header.length);
  const bytes = new Uint8Array(size);
  new DataView(bytes.buffer).setUint32(0, header.length);
  bytes.set(header, LENGTH_BYTES);
  let at = LENGTH_BYTES + header.length;
  for (const codes of blocks) {
    bytes.set(codes, at);
    at += codes.length;
  }
  return bytes;
}

/** Throws RangeError with the reason for content that this version does not understand. */
export function decodeHistoryFile(bytes: Uint8Array): HistoryFile {
  if (bytes.length < LENGTH_BYTES) throw new RangeError('no header');
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0);
  if (length > bytes.length - LENGTH_BYTES) throw new RangeError('incomplete header');
  const header = parsed(bytes.subarray(LENGTH_BYTES, LENGTH_BYTES + length));
  if (header['version'] !== FILE_VERSION) throw new RangeError(`unknown version ${String(header['version'])}`);
  const timeline = timelineOf(recordOf(header['timeline'], 'timeline'));
  const period = numberOf(header['period'], 'period', 0, periodOf(slotOf(LONG_LEVEL, timeline.timeMs)));
  const codes = new Codes(bytes.subarray(LENGTH_BYTES + length));
  const series = listOf(header['series'], 'series', MAX_SAVED_SERIES).map((each) => seriesOf(each, codes, timeline));
  codes.end();
  return { period, timeline, series };
}

/** Reads the codes of the blocks one after the other. */
class Codes {
  private readonly bytes: Uint8Array;
  private at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  take(length: number): Uint8Array {
    if (this.at + length > this.bytes.length) throw new RangeError('incomplete blocks');
    this.at += length;
    return this.bytes.slice(this.at - length, this.at);
  }

  end(): void {
    if (this.at !== this.bytes.length) throw new RangeError('bytes after the last block');
  }
}

function seriesOf(value: unknown, codes: Codes, { timeMs }: SavedTimeline): SavedSeries {
  const { identity: given, lastSeenMs, columns: list } = recordOf(value, 'series');
  const { scope, namespace, name, container } = recordOf(given, 'identity');
  if (!SCOPES.includes(scope as Scope)) throw new RangeError('unknown scope');
  const identity: Identity = {
    scope: scope as Scope,
    namespace: textOf(namespace, 'namespace'),
    name: textOf(name, 'name'),
    container: textOf(container, 'container'),
  };
  const columns = listOf(list, 'columns', 2 * METRICS[identity.scope].length + 64).map((each): SavedColumn => {
    const [metric, peak, low, high, length] = listOf(each, 'column', 5);
    if (length !== BLOCK_SLOTS && length !== CONSTANT_CODES) throw new RangeError('unknown block');
    const lowest = numberOf(low, 'low', -3e38, 3e38);
    const found = codes.take(length);
    if (length === CONSTANT_CODES && found.some((slot) => slot >= BLOCK_SLOTS)) throw new RangeError('unknown slot');
    const highest = numberOf(high, 'high', lowest, 3e38);
    return { metric: textOf(metric, 'metric'), isPeak: peak === 1, low: lowest, high: highest, codes: found };
  });
  return { identity, lastSeenMs: Math.min(timeMs, numberOf(lastSeenMs, 'lastSeenMs', -1, MAX_TIME_MS)), columns };
}

function timelineOf(value: Record<string, unknown>): SavedTimeline {
  const timeMs = numberOf(value['timeMs'], 'timeMs', 0, MAX_TIME_MS);
  const segments = listOf(value['segments'], 'segments', MAX_SEGMENTS).map((each) => {
    const { fromMs, offsetMs } = recordOf(each, 'segment');
    return {
      fromMs: numberOf(fromMs, 'fromMs', 0, timeMs),
      offsetMs: numberOf(offsetMs, 'offsetMs', -MAX_TIME_MS, MAX_TIME_MS),
    };
  });
  if (segments.some(({ fromMs }, at) => fromMs < (segments[at - 1]?.fromMs ?? 0)))
    throw new RangeError('segments are not in order');
  return { timeMs, wallMs: numberOf(value['wallMs'], 'wallMs', -MAX_TIME_MS, MAX_TIME_MS), segments };
}

function parsed(bytes: Uint8Array): Record<string, unknown> {
  try {
    return recordOf(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)), 'header');
  } catch {
    throw new RangeError('header is not JSON');
  }
}

function recordOf(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new RangeError(`${what} is not an object`);
  return value as Record<string, unknown>;
}

function listOf(value: unknown, what: string, most: number): readonly unknown[] {
  if (!Array.isArray(value) || value.length > most) throw new RangeError(`${what} is not a list, or is too long`);
  return value;
}

function numberOf(value: unknown, what: string, least: number, most: number): number {
  if (typeof value !== 'number' || !(value >= least && value <= most)) throw new RangeError(`${what} is out of range`);
  return value;
}

function textOf(value: unknown, what: string): string {
  if (typeof value !== 'string' || value.length > MAX_NAME || value.includes('\0'))
    throw new RangeError(`${what} is not a name`);
  return value;
}

/** `/etc/origin/node/snapshot-schedule.yaml`: how often this host takes snapshots of its store, and how many it keeps. */
import {
  boolean,
  checkedString,
  type Field,
  integer,
  object,
  oneOf,
  type Parsed,
  readConfigFile,
  string,
} from './strict-yaml.ts';

const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };
const LEAST_MS = 60_000;
const MOST_MS = 365 * 86_400_000;
export const EVERY_MEND = 'give minutes, hours or days such as 30m, 6h or 7d';

/** Milliseconds; undefined when it is nothing of the kind. */
export function parseEvery(text: string): number | undefined {
  const [, digits = '', unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  const ms = Number(digits) * (UNITS[unit] ?? 0);
  return ms >= LEAST_MS && ms <= MOST_MS ? ms : undefined;
}

const shape = {
  apiVersion: oneOf('hyperedge.dev/v1'),
  kind: oneOf('SnapshotSchedule'),
  enabled: boolean(),
  every: checkedString((text) => (parseEvery(text) === undefined ? EVERY_MEND : undefined)),
  keep: integer(1, 1000),
  directory: string({ pattern: /^\//, mend: 'give an absolute path' }),
} as const;

const field: Field<Parsed<typeof shape, 'apiVersion' | 'kind'>> = object(shape, ['apiVersion', 'kind']);

export interface SnapshotSchedule {
  readonly enabled: boolean;
  /** As in the file. */
  readonly every: string;
  readonly keep: number;
  readonly directory: string;
}

/** Few writes: one a day, and a few days back. */
const DEFAULTS = { enabled: true, every: '24h', keep: 3 };

/** What holds where the file says nothing, or is not there. Throws CodedError 'bad-config' naming file, line and field. */
export async function readSchedule(file: string, directory: string): Promise<SnapshotSchedule> {
  const { enabled, every, keep, directory: other } = (await readConfigFile(file, field)) ?? {};
  return {
    enabled: enabled ?? DEFAULTS.enabled,
    every: every ?? DEFAULTS.every,
    keep: keep ?? DEFAULTS.keep,
    directory: other ?? directory,
  };
}

/** `/etc/origin/node/snapshot-schedule.yaml`: the interval, retention and directory of this host's store snapshots. */
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { stringify } from 'yaml';
import { CodedError, messageOf } from '../../base/errors.ts';
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
} from '../../wire/strict-yaml.ts';
import { EVERY_FORMAT, parseEvery, type SnapshotSchedule } from '../administration/schedule.ts';

export { EVERY_FORMAT, parseEvery };

const shape = {
  apiVersion: oneOf('hyperedge.dev/v1'),
  kind: oneOf('SnapshotSchedule'),
  enabled: boolean(),
  every: checkedString((text) => (parseEvery(text) === undefined ? EVERY_FORMAT : undefined)),
  keep: integer(1, 1000),
  directory: string({ pattern: /^\//, fix: 'give an absolute path' }),
} as const;

const field: Field<Parsed<typeof shape, 'apiVersion' | 'kind'>> = object(shape, ['apiVersion', 'kind']);

/** One snapshot a day limits writes to flash storage. */
const DEFAULTS = { enabled: true, every: '24h', keep: 3 };

/**
 * Reads the schedule. Missing fields have their defaults, also if the file is missing. Throws CodedError 'bad-config'
 * with file, line and field.
 */
export async function readSchedule(file: string, directory: string): Promise<SnapshotSchedule> {
  const { enabled, every, keep, directory: other } = (await readConfigFile(file, field)) ?? {};
  return {
    enabled: enabled ?? DEFAULTS.enabled,
    every: every ?? DEFAULTS.every,
    keep: keep ?? DEFAULTS.keep,
    directory: other ?? directory,
  };
}

/** Replaces the file. Throws CodedError 'unwritable'. */
export async function writeSchedule(file: string, schedule: SnapshotSchedule): Promise<void> {
  const document = { apiVersion: 'hyperedge.dev/v1', kind: 'SnapshotSchedule', ...schedule };
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await writeFile(`${file}.new`, stringify(document), { mode: 0o644, flush: true });
    await rename(`${file}.new`, file);
  } catch (error) {
    throw new CodedError('unwritable', `cannot write ${file}: ${messageOf(error)}`, { cause: error });
  }
}

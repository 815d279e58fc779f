/** Record of a host's update on disk. */
import { CodedError } from '../../../base/errors.ts';

export interface SwitchRecord {
  /** ID of the `WantedUpdate`. */
  readonly id: string;
  readonly from: string;
  readonly to: string;
  readonly phase: 'trying' | 'rollingBack' | 'done' | 'failed';
  readonly message: string;
  /** Time in milliseconds within which the new executable must confirm the update. */
  readonly timeoutMs: number;
  /**
   * Name of the snapshot of the store, in the directory of the record. After a rollback, the previous executable
   * restores the snapshot if it cannot read the store. Absent if no snapshot was taken, or if the host has been healthy
   * since the rollback.
   */
  readonly snapshot?: string;
  /** Highest level of the store's log that `from` reads. Absent in records of older releases. */
  readonly readableLevel?: number;
}

/**
 * Snapshot that the store may restore after a rollback to `running`. Undefined if the running release was not reached
 * by a rollback, or if the host has been healthy since the rollback.
 */
export function snapshotAfterRollback(record: SwitchRecord | undefined, running: string): string | undefined {
  if (record === undefined || record.from !== running || record.phase === 'trying') return undefined;
  return record.phase === 'done' && record.to !== running ? undefined : record.snapshot;
}

/** Pattern for the file names of snapshots. */
const SNAPSHOT_NAME = /^store-[\w.+-]+\.db$/;

/**
 * Parses the record of `file`. `text` is undefined if the file is missing: the host was never updated. Throws
 * CodedError 'damaged' if the text is not a record, because an update may be in progress or may have to be rolled back.
 */
export function parseSwitchRecord(text: string | undefined, file: string): SwitchRecord | undefined {
  if (text === undefined) return undefined;
  const record = switchRecordOf(text);
  if (record === undefined)
    throw new CodedError(
      'damaged',
      `${file}: the record of the last update is damaged; ` +
        `run the install command of the release that this host should run, and then mv ${file} ${file}.damaged`,
    );
  return record;
}

function switchRecordOf(text: string): SwitchRecord | undefined {
  let given: Partial<Record<keyof SwitchRecord, unknown>> | null;
  try {
    given = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { id, from, to, message, timeoutMs, snapshot, readableLevel } = given ?? {};
  const phase = (['trying', 'rollingBack', 'done', 'failed'] as const).find((each) => each === given?.phase);
  const whole =
    typeof id === 'string' &&
    typeof from === 'string' &&
    typeof to === 'string' &&
    typeof message === 'string' &&
    typeof timeoutMs === 'number';
  if (!whole || phase === undefined) return undefined;
  const record = {
    id,
    from,
    to,
    phase,
    message,
    timeoutMs,
    ...(Number.isSafeInteger(readableLevel) ? { readableLevel: Number(readableLevel) } : {}),
  };
  return typeof snapshot === 'string' && SNAPSHOT_NAME.test(snapshot) ? { ...record, snapshot } : record;
}

/**
 * Conditions of the Node about maintenance: the next expiry of a certificate, and the last snapshot of the store. Users
 * without access to the host can read them with the Node.
 */
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { bytesText } from '../../base/text/bytes-text.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import type { HostCondition, KubeletDeps } from '../../kubelet/index.ts';
import { parseEvery, readSchedule } from '../../store/config/snapshot-schedule.ts';
import { ownsStore } from '../certificates/issue-certificates.ts';
import type { Settings } from '../config/settings.ts';
import { certificateFiles } from '../doctor/certificate-facts.ts';
import { systemClock as clock } from '../process/process.ts';
import { listSnapshots } from '../store/administration.ts';

const DOCTOR = 'run "hyperedge doctor --check certificates" on this host';
const HOUR_MS = 3_600_000;
const EXPIRES_SOON_MS = 14 * 24 * HOUR_MS;
/** Number of intervals of the schedule after which a snapshot is overdue. */
const LATE_INTERVALS = 2;

export interface Expiry {
  readonly file: string;
  /** Expiry of the certificate; undefined if the file is not a valid certificate. */
  readonly notAfterMs: number | undefined;
}

export interface SnapshotFacts {
  /** Interval of the schedule; undefined if no snapshots are scheduled. */
  readonly every: string | undefined;
  /**
   * Directory of the snapshots if the schedule names another one than the host's own. Its snapshots are not read,
   * because its file system may not answer.
   */
  readonly elsewhere: string | undefined;
  readonly newest: { readonly takenMs: number; readonly bytes: number } | undefined;
  /** Milliseconds since the host process started. */
  readonly observedMs: number;
}

/** The condition CertificateExpiresSoon; undefined if the host has no certificates. */
export function expiryCondition(certificates: readonly Expiry[], nowMs: number): HostCondition | undefined {
  const type = 'CertificateExpiresSoon';
  const damaged = certificates.find(({ notAfterMs }) => notAfterMs === undefined);
  if (damaged !== undefined) {
    const message = `${basename(damaged.file)} is not readable as a certificate; ${DOCTOR}`;
    return { type, status: 'True', reason: 'CertificateIsDamaged', message };
  }
  const [next] = certificates.toSorted((a, b) => (a.notAfterMs ?? 0) - (b.notAfterMs ?? 0));
  if (next?.notAfterMs === undefined) return undefined;
  const isSoon = next.notAfterMs - nowMs < EXPIRES_SOON_MS;
  const message = `next expiry ${timestamp(next.notAfterMs)}: ${basename(next.file)}`;
  return isSoon
    ? { type, status: 'True', reason: 'CertificateExpires', message: `${message}; ${DOCTOR}` }
    : { type, status: 'False', reason: 'CertificatesAreValid', message };
}

export function snapshotCondition(
  { every, elsewhere, newest, observedMs }: SnapshotFacts,
  nowMs: number,
): HostCondition {
  const type = 'SnapshotOverdue';
  if (every === undefined)
    return { type, status: 'False', reason: 'ScheduleIsOff', message: 'no snapshots are scheduled on this host' };
  if (elsewhere !== undefined)
    return {
      type,
      status: 'False',
      reason: 'SavedElsewhere',
      message: `saved every ${every} into ${elsewhere}; run "hyperedge snapshot list" on this host`,
    };
  const ageMs = newest === undefined ? observedMs : nowMs - newest.takenMs;
  const isLate = ageMs > LATE_INTERVALS * (parseEvery(every) ?? 24 * HOUR_MS);
  const last =
    newest === undefined
      ? 'no snapshot was saved yet'
      : `last snapshot ${timestamp(newest.takenMs)}, ${bytesText(newest.bytes, ' ')}`;
  return isLate
    ? { type, status: 'True', reason: 'SnapshotIsLate', message: `${last}; run "hyperedge snapshot save"` }
    : { type, status: 'False', reason: 'SnapshotsAreSaved', message: `${last}; every ${every}` };
}

/**
 * Returns the conditions. The facts are read once an hour and asynchronously, so that no report of the Node waits for a
 * disk.
 */
export function createMaintenanceConditions(settings: Settings, log: Log): NonNullable<KubeletDeps['conditions']> {
  const startMs = clock.monotonicMs();
  let known: readonly HostCondition[] = [];
  let readAtMs = Number.NEGATIVE_INFINITY;
  let isReading = false;
  const refresh = async (): Promise<void> => {
    const nowMs = clock.nowMs();
    const expiry = expiryCondition(await expiries(settings.root), nowMs);
    const snapshots = ownsStore(settings) ? await snapshotFacts(settings, clock.monotonicMs() - startMs) : undefined;
    known = [
      ...(expiry === undefined ? [] : [expiry]),
      ...(snapshots === undefined ? [] : [snapshotCondition(snapshots, nowMs)]),
    ];
  };
  return async () => {
    if (!isReading && clock.monotonicMs() - readAtMs > HOUR_MS) {
      isReading = true;
      readAtMs = clock.monotonicMs();
      refresh()
        .catch((error: unknown) => log.warn('maintenance facts not read', { error: messageOf(error) }))
        .finally(() => {
          isReading = false;
        });
    }
    return known;
  };
}

const expiries = (root: string): Promise<Expiry[]> =>
  Promise.all(
    certificateFiles(root).map(async ({ file }) => {
      try {
        return { file, notAfterMs: new X509Certificate(await readFile(file, 'utf8')).validToDate.getTime() };
      } catch {
        return { file, notAfterMs: undefined };
      }
    }),
  );

async function snapshotFacts({ paths }: Settings, observedMs: number): Promise<SnapshotFacts> {
  const { enabled, every, directory } = await readSchedule(paths.snapshotSchedule, paths.snapshots);
  const elsewhere = directory === paths.snapshots ? undefined : directory;
  const found = !enabled || elsewhere !== undefined ? [] : await listSnapshots(directory, { verify: false });
  return {
    every: enabled ? every : undefined,
    elsewhere,
    newest: found.find(({ problem }) => problem === ''),
    observedMs,
  };
}

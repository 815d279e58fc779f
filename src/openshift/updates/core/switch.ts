/**
 * Switch of a host's executable. A record on disk and a link are replaced atomically, so that after a power failure the
 * next start determines which step is due. During a trial, a guard process with the previous executable reverts the
 * switch if the new executable does not confirm in time.
 */
import { type SwitchRecord, snapshotAfterRollback } from './port.ts';

export interface HostState {
  readonly record: SwitchRecord | undefined;
  /** Version to which the link points; undefined if the executable is a regular file. */
  readonly link: string | undefined;
  /** Version of the running host process. */
  readonly running: string;
}

export type SwitchStep =
  | { readonly step: 'none' }
  /** The host process downloads and installs the executables, and then writes the record with the phase `trying`. */
  | { readonly step: 'stage' }
  | { readonly step: 'write'; readonly record: SwitchRecord }
  | { readonly step: 'link'; readonly version: string }
  | { readonly step: 'restart' }
  /** The new executable runs. It writes this record once the host is healthy. */
  | { readonly step: 'confirm'; readonly record: SwitchRecord };

/** Returns the next step of the host process. `wanted` is undefined if the requested version is unknown. */
export function nextSwitchStep(
  { record, link, running }: HostState,
  wanted: { readonly id: string; readonly version: string } | undefined,
): SwitchStep {
  switch (record?.phase) {
    case 'trying':
      if (running === record.to) return { step: 'confirm', record: { ...record, phase: 'done', message: '' } };
      // Another executable runs than the previous or the new one, so an administrator has replaced the executable.
      if (running !== record.from) return failed(record, `${running} was installed during the update`);
      return link === record.to ? { step: 'restart' } : { step: 'link', version: record.to };
    case 'rollingBack':
      if (link !== record.from) return { step: 'link', version: record.from };
      return running === record.from ? failed(record, record.message) : { step: 'restart' };
    default:
      if (wanted === undefined || wanted.id === record?.id) return { step: 'none' };
      if (wanted.version !== running) return { step: 'stage' };
      return { step: 'write', record: doneWithout(wanted, running, snapshotAfterRollback(record, running)) };
  }
}

const failed = (record: SwitchRecord, message: string): SwitchStep => ({
  step: 'write',
  record: { ...record, phase: 'failed', message },
});

/** After a rollback, the snapshot stays in the record until the host is healthy: the store may not have started yet. */
const doneWithout = (
  { id, version }: { readonly id: string; readonly version: string },
  from: string,
  snapshot: string | undefined,
): SwitchRecord => ({
  id,
  from,
  to: version,
  phase: 'done',
  message: '',
  timeoutMs: 0,
  ...(snapshot === undefined ? {} : { snapshot }),
});

/**
 * Time for which a host must be healthy, without a restart of a component, before its update is confirmed. It is longer
 * than a minute, so that a release whose API server terminates after a minute is rolled back.
 */
export const STABLE_MS = 90_000;

/** Maximum number of starts of the guard during one trial. The guard starts again at each boot. */
const MAX_STARTS = 4;

export type GuardStep =
  | { readonly step: 'end' }
  | { readonly step: 'wait' }
  | { readonly step: 'write'; readonly record: SwitchRecord }
  | { readonly step: 'link'; readonly version: string }
  /** The guard restarts the host process with the previous executable, after the link was reverted. */
  | { readonly step: 'restart' };

/** State of the guard that is not on disk. */
export interface GuardState {
  /** Time since the guard process started. */
  readonly elapsedMs: number;
  /** Number of starts of the guard during this trial. */
  readonly starts: number;
  /** True if the guard has restarted the host process since it reverted the link. */
  readonly restarted: boolean;
}

export function nextGuardStep(
  record: SwitchRecord | undefined,
  link: string | undefined,
  { elapsedMs, starts, restarted }: GuardState,
): GuardStep {
  if (record === undefined || record.phase === 'done' || record.phase === 'failed') return { step: 'end' };
  if (record.phase === 'rollingBack') {
    if (link !== record.from) return { step: 'link', version: record.from };
    return restarted ? { step: 'wait' } : { step: 'restart' };
  }
  // The link has not been switched, so the previous executable still runs and continues the update.
  if (link !== record.to) return { step: 'wait' };
  const why =
    elapsedMs > record.timeoutMs + STABLE_MS
      ? `${record.to} was not healthy within ${Math.round(record.timeoutMs / 1000)} s, and then for ${STABLE_MS / 1000} s without a restart`
      : starts > MAX_STARTS
        ? `${record.to} was started ${starts} times without becoming healthy`
        : undefined;
  return why === undefined
    ? { step: 'wait' }
    : { step: 'write', record: { ...record, phase: 'rollingBack', message: why } };
}

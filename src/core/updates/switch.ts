/**
 * How a host changes its executable, as a record on disk that is written atomically and a link that is swapped
 * atomically: after a power cut at any step the next start finds which step is due. While an update is tried, a guard
 * that runs the former executable goes back to it by itself when the new one does not confirm in time.
 */
import type { SwitchRecord } from './port.ts';

export interface HostState {
  readonly record: SwitchRecord | undefined;
  /** The version that the link names; undefined: the executable is a file of its own. */
  readonly link: string | undefined;
  /** Of the host process that runs. */
  readonly running: string;
}

export type SwitchStep =
  | { readonly step: 'none' }
  /** Fetch and place the executables, then write the record `trying`. */
  | { readonly step: 'stage' }
  | { readonly step: 'write'; readonly record: SwitchRecord }
  | { readonly step: 'link'; readonly version: string }
  | { readonly step: 'restart' }
  /** The new executable runs: to be confirmed when the host is healthy. */
  | { readonly step: 'confirm'; readonly record: SwitchRecord };

/** The next step of the host process. `wanted` undefined: nothing is known of the cluster's wish. */
export function nextSwitchStep(
  { record, link, running }: HostState,
  wanted: { readonly id: string; readonly version: string } | undefined,
): SwitchStep {
  switch (record?.phase) {
    case 'trying':
      if (running === record.to) return { step: 'confirm', record: { ...record, phase: 'done', message: '' } };
      // The version of a third executable: it was replaced by hand.
      if (running !== record.from) return failed(record, `${running} was installed meanwhile`);
      return link === record.to ? { step: 'restart' } : { step: 'link', version: record.to };
    case 'rollingBack':
      if (link !== record.from) return { step: 'link', version: record.from };
      return running === record.from ? failed(record, record.message) : { step: 'restart' };
    default:
      if (wanted === undefined || wanted.id === record?.id) return { step: 'none' };
      if (wanted.version !== running) return { step: 'stage' };
      return { step: 'write', record: doneWithout(wanted, running) };
  }
}

const failed = (record: SwitchRecord, message: string): SwitchStep => ({
  step: 'write',
  record: { ...record, phase: 'failed', message },
});

const doneWithout = (
  { id, version }: { readonly id: string; readonly version: string },
  from: string,
): SwitchRecord => ({
  ...{ id, from, to: version, phase: 'done', message: '', timeoutMs: 0 },
});

/** How long a host has to be healthy, without a restart of a component, before its update is confirmed. */
export const STABLE_MS = 60_000;

/** Starts of the guard, that is boots, that a trial may take. */
const MAX_STARTS = 4;

export type GuardStep =
  | { readonly step: 'end' }
  | { readonly step: 'wait' }
  | { readonly step: 'write'; readonly record: SwitchRecord }
  | { readonly step: 'link'; readonly version: string }
  /** After the link: the host process starts with the former executable. */
  | { readonly step: 'restart' };

/** What the guard knows besides the disk. */
export interface GuardState {
  /** Since this start of the guard. */
  readonly elapsedMs: number;
  /** Times that it has been started during this trial. */
  readonly starts: number;
  /** It has restarted the host process since the link was set back. */
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
  // Not swapped yet: the former executable runs and continues by itself.
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

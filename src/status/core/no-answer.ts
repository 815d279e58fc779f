/** Determines why the host process does not respond, from its lock and its systemd unit. */
import type { Facts } from '../../doctor/port.ts';
import type { NoAnswer } from '../port.ts';

/**
 * Reason. `pid`: process that holds the lock, if any. `unit`: undefined without systemd or with another root than `/`.
 */
export function noAnswerOf(pid: number | undefined, unit: Facts['unit'] | undefined): NoAnswer {
  if (pid !== undefined) return { why: 'silent', pid };
  if (unit === undefined) return { why: 'not-running' };
  const { load, active, result, restarts, lastError } = unit;
  if (load !== 'loaded') return { why: 'no-unit', load };
  // Between two attempts to start the process, systemd reports the unit as activating.
  const hasFailed = active === 'failed' || (active === 'activating' && restarts > 0);
  if (!hasFailed) return { why: 'not-running' };
  return { why: 'unit-failed', result, restarts, ...(lastError === undefined ? {} : { lastError }) };
}

/** Line for the report; undefined if the error of the control socket already explains the reason. */
export function noAnswerText(noAnswer: NoAnswer, socket: string): string | undefined {
  switch (noAnswer.why) {
    case 'not-running':
      return undefined;
    case 'silent':
      return `the host process (pid ${noAnswer.pid}) runs but does not answer at ${socket}: the process is still starting, or it hangs`;
    case 'no-unit':
      return noAnswer.load === 'not-found'
        ? 'the unit hyperedge.service is not installed'
        : `the unit hyperedge.service cannot start: it is ${noAnswer.load}`;
    case 'unit-failed': {
      const { result, restarts, lastError } = noAnswer;
      const last = lastError === undefined ? '' : `; its last error: ${lastError}`;
      return `the unit hyperedge.service has failed (${result}, ${restarts} restarts)${last}`;
    }
  }
}

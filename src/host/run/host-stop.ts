/** Stop of the host process within time limits, and detection of a shutdown of the machine. */
import { ignore, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { ServiceManager } from '../../kubelet/io/systemd/index.ts';
import { settlesWithin } from '../process/process.ts';

/** Time limit of a stop. It exceeds a pod's default grace period of 30 s. */
const STOP_TIMEOUT_MS = 45_000;
const KILL_TIMEOUT_MS = 10_000;
const SYSTEMD_ANSWER_MS = 2_000;

/**
 * Waits for the stop. When the time limit expires, kills the pods and waits for a second time limit. Returns false if
 * that expires as well.
 */
export async function stopInTime(stopping: Promise<void>, hurry: AbortController, log: Log): Promise<boolean> {
  if (await settlesWithin(stopping, STOP_TIMEOUT_MS)) return true;
  log.warn('pods not ended in time; killing them', { ms: STOP_TIMEOUT_MS });
  hurry.abort();
  if (await settlesWithin(stopping, KILL_TIMEOUT_MS)) return true;
  log.warn('host not stopped in time', { ms: STOP_TIMEOUT_MS + KILL_TIMEOUT_MS });
  return false;
}

/**
 * Whether systemd is shutting down the machine. False if systemd does not answer in time: systemd may itself be waiting
 * until this unit has stopped.
 */
export async function isMachineShuttingDown(serviceManager: ServiceManager, log: Log): Promise<boolean> {
  const answer = serviceManager.goingDown();
  try {
    if (await settlesWithin(answer, SYSTEMD_ANSWER_MS)) return await answer;
    answer.catch(ignore('a late answer is not used'));
    log.warn('systemd shutdown state unknown', { timeoutMs: SYSTEMD_ANSWER_MS });
  } catch (error) {
    log.warn('systemd shutdown state unknown', { error: messageOf(error) });
  }
  return false;
}

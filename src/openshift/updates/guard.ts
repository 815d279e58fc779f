/**
 * Guard of an update: runs the former executable beside the new one and rolls back if the new one does not confirm in
 * time. It needs no API server. The service manager starts the guard at each boot during a trial.
 */

import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import { nextGuardStep } from './core/index.ts';
import type { HostExecutables } from './port.ts';

const POLL_MS = 500;

/** Guards the trial of a new executable and rolls back if it fails. Resolves when the trial has ended. */
export async function runGuard(executables: HostExecutables, clock: Clock, log: Log): Promise<void> {
  const beganMs = clock.monotonicMs();
  let restarted = false;
  let starts: number | undefined;
  let logged = '';
  for (;;) {
    try {
      const record = await executables.record();
      // The number of starts is in a separate file, because the host process may write the record at the same time.
      starts ??= record === undefined ? 0 : await executables.countStart(record.id);
      const step = nextGuardStep(record, await executables.link(), {
        elapsedMs: clock.monotonicMs() - beganMs,
        starts,
        restarted,
      });
      if (step.step === 'end') return;
      if (step.step === 'write') {
        log.error('update is rolled back', { to: step.record.from, reason: step.record.message });
        await executables.writeRecord(step.record);
        continue;
      }
      if (step.step === 'link') {
        await executables.setLink(step.version);
        continue;
      }
      if (step.step === 'restart') {
        restarted = true;
        await executables.restart();
      }
    } catch (error) {
      // A failure that an administrator has to repair would otherwise fill the log.
      if (messageOf(error) !== logged) log.warn('guard step failed; retrying', { error: messageOf(error) });
      logged = messageOf(error);
    }
    await new Promise<void>((resolve) => {
      clock.setTimer(POLL_MS, resolve);
    });
  }
}

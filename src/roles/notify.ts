/** Readiness notification for units of `Type=notify`, such as Debian's etcd.service. Source: sd_notify(3). */
import { execFile } from 'node:child_process';
import { messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';

const TIMEOUT_MS = 10_000;

/**
 * Does nothing without `NOTIFY_SOCKET`. Node has no Unix datagram sockets, so `systemd-notify` sends the message: as
 * root with this process's pid, else with its own, which systemd accepts only with `NotifyAccess=all`. Never throws: a
 * failure is logged.
 */
export async function tellReady(environment: Readonly<Record<string, string | undefined>>, log: Log): Promise<void> {
  const socket = environment['NOTIFY_SOCKET'];
  if (socket === undefined || socket === '') return;
  const env = { PATH: environment['PATH'], NOTIFY_SOCKET: socket };
  const failed = await new Promise<Error | undefined>((resolve) => {
    execFile('systemd-notify', ['--ready'], { env, timeout: TIMEOUT_MS }, (error) => resolve(error ?? undefined));
  });
  if (failed !== undefined) {
    log.error('systemd readiness notification failed; set Type=simple in the unit', {
      cause: messageOf(failed),
    });
  } else if (process.getuid?.() !== 0) {
    log.info('systemd readiness notification sent; without root it needs NotifyAccess=all in the unit');
  }
}

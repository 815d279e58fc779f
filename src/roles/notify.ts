/** Telling systemd that a unit of `Type=notify`, as Debian's for etcd is, has started. Source: sd_notify(3). */
import { execFile } from 'node:child_process';
import { messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';

const TIMEOUT_MS = 10_000;

/**
 * Does nothing without `NOTIFY_SOCKET`. Node has no datagram sockets of the file system, so `systemd-notify` says it: in our name where
 * we are root, in its own otherwise, and that systemd takes with `NotifyAccess=all` alone. Never throws: a failure is logged.
 */
export async function tellReady(environment: Readonly<Record<string, string | undefined>>, log: Log): Promise<void> {
  const socket = environment['NOTIFY_SOCKET'];
  if (socket === undefined || socket === '') return;
  const env = { PATH: environment['PATH'], NOTIFY_SOCKET: socket };
  const failed = await new Promise<Error | undefined>((resolve) => {
    execFile('systemd-notify', ['--ready'], { env, timeout: TIMEOUT_MS }, (error) => resolve(error ?? undefined));
  });
  if (failed !== undefined) {
    log.error('systemd could not be told that this has started; set Type=simple in the unit', {
      cause: messageOf(failed),
    });
  } else if (process.getuid?.() !== 0) {
    log.info(
      'systemd has been told that this has started; without root it listens only with NotifyAccess=all in the unit',
    );
  }
}

/**
 * Notifications for units of `Type=notify`, such as Debian's etcd.service. Source: sd_notify(3),
 * sd_watchdog_enabled(3).
 */
import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { ignore, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';

const TIMEOUT_MS = 10_000;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Notifies systemd that the process is ready. Without `NOTIFY_SOCKET` there is no unit to notify. Node does not support
 * Unix datagram sockets, so the program `systemd-notify` sends the message. As root, it sends the message with the PID
 * of this process; otherwise with its own PID, which systemd accepts only with `NotifyAccess=all`. A failure is logged,
 * never thrown.
 */
export async function notifyReady(environment: Environment, log: Log): Promise<void> {
  const socket = socketOf(environment);
  if (socket === undefined) return;
  const failed = await notify(environment, socket, '--ready');
  if (failed !== undefined) {
    log.error('systemd readiness notification failed; set Type=simple in the unit', {
      cause: messageOf(failed),
    });
  } else if (process.getuid?.() !== 0) {
    log.info('systemd readiness notification sent; without root it needs NotifyAccess=all in the unit');
  }
}

/**
 * Notifies the unit's watchdog (`WatchdogSec`) while the event loop runs and file operations finish. If either hangs,
 * systemd restarts this process. Does nothing without `WATCHDOG_USEC`. A failure is logged once.
 */
export function keepWatchdog(
  environment: Environment,
  log: Log,
  touchFile: () => Promise<unknown> = () => stat('/proc/self'),
): { stop(): void } {
  const socket = socketOf(environment);
  const limitMs = Number(environment['WATCHDOG_USEC']) / 1000;
  const pid = environment['WATCHDOG_PID'];
  if (socket === undefined || !(limitMs > 0) || (pid !== undefined && Number(pid) !== process.pid))
    return { stop: () => {} };
  let logged = false;
  let isTouching = false;
  const beat = async (): Promise<void> => {
    if (isTouching) return;
    isTouching = true;
    await touchFile().catch(ignore('the file only shows life; systemd is notified below'));
    isTouching = false;
    const failed = await notify(environment, socket, 'WATCHDOG=1');
    if (failed === undefined || logged) return;
    logged = true;
    log.error('systemd watchdog notification failed; set WatchdogSec=0 in the unit', { cause: messageOf(failed) });
  };
  const timer = setInterval(() => void beat(), limitMs / 3);
  timer.unref();
  void beat();
  return { stop: () => clearInterval(timer) };
}

function socketOf(environment: Environment): string | undefined {
  const socket = environment['NOTIFY_SOCKET'];
  return socket === '' ? undefined : socket;
}

function notify(environment: Environment, socket: string, message: string): Promise<Error | undefined> {
  const env = { PATH: environment['PATH'], NOTIFY_SOCKET: socket };
  return new Promise((resolve) => {
    execFile('systemd-notify', [message], { env, timeout: TIMEOUT_MS }, (error) => resolve(error ?? undefined));
  });
}

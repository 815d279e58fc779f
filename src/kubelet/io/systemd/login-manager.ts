/** systemd-logind, which announces and delays a shutdown. Source: org.freedesktop.login1(5), logind.conf(5). */
import { spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CodedError, ignore } from '../../../base/errors.ts';
import { type Message, Reader } from '../../../wire/dbus/dbus-messages.ts';
import { SystemBus } from '../../../wire/dbus/system-bus.ts';
import { createManagerBus, type ManagerBus } from '../../../wire/dbus/systemd-manager.ts';
import type { LoginManager, ShutdownLock } from '../../shutdown/port.ts';

const LOGIN = 'org.freedesktop.login1';
const LOGIN_PATH = '/org/freedesktop/login1';
const MANAGER = 'org.freedesktop.login1.Manager';
const SIGHUP = 1;
/** Longest wait until logind has reloaded its configuration after a SIGHUP. */
const RELOAD_MS = 2_000;
const RELOAD_POLL_MS = 50;

export interface LoginManagerOptions {
  /** Socket of the system bus. */
  readonly bus?: string;
  readonly manager?: ManagerBus;
  /** Path of the drop-in of logind.conf that raises the maximum delay. */
  readonly dropIn?: string;
  /** Path of the program that holds a lock. */
  readonly inhibit?: string;
}

export function createLoginManager(options: LoginManagerOptions = {}): LoginManager {
  const { manager = createManagerBus(), dropIn = '/etc/systemd/logind.conf.d/99-kubelet.conf' } = options;
  const maxDelayMs = async (): Promise<number> => {
    const bus = await SystemBus.open(options.bus);
    try {
      const answer = await bus.call({
        destination: LOGIN,
        path: LOGIN_PATH,
        interface: 'org.freedesktop.DBus.Properties',
        member: 'Get',
        arguments: [MANAGER, 'InhibitDelayMaxUSec'],
      });
      if (answer.signature() !== 't') throw new CodedError('systemd', 'InhibitDelayMaxUSec is not a number');
      return Number(answer.uint64() / 1000n);
    } finally {
      bus.close();
    }
  };
  return {
    maxDelayMs,
    async raiseMaxDelay(ms) {
      const text = `# Written by the kubelet: locks may delay a shutdown this long.\n[Login]\nInhibitDelayMaxSec=${Math.ceil(ms / 1000)}\n`;
      await mkdir(dirname(dropIn), { recursive: true, mode: 0o755 });
      await writeFile(dropIn, text, { mode: 0o644 });
      await manager.call('KillUnit', 'ssi', (body) => {
        body.string('systemd-logind.service');
        body.string('all');
        body.uint32(SIGHUP);
      });
      for (let waited = 0; waited < RELOAD_MS && (await maxDelayMs()) < ms; waited += RELOAD_POLL_MS)
        await new Promise((resolve) => setTimeout(resolve, RELOAD_POLL_MS));
    },
    lock: () => holdLock(options.inhibit ?? 'systemd-inhibit'),
    async follow(listener) {
      const onSignal = async (signal: Message): Promise<void> => {
        if (signal.member !== 'PrepareForShutdown' || signal.signature !== 'b') return;
        // Any process may send a signal to this connection, so only the login manager's own is accepted.
        if (signal.sender !== (await bus.owner(LOGIN))) return;
        listener(new Reader(signal.body).uint32() === 1);
      };
      const bus = await SystemBus.open(options.bus, (signal) => void onSignal(signal).catch(() => bus.close()));
      try {
        await bus.match(`type='signal',sender='${LOGIN}',interface='${MANAGER}',member='PrepareForShutdown'`);
      } catch (error) {
        bus.close();
        throw error;
      }
      return { close: () => bus.close(), lost: bus.lost };
    },
  };
}

/**
 * A lock is a file descriptor in the response, which Node cannot receive. A child process holds it until its input
 * ends, which also happens when this process exits.
 */
async function holdLock(program: string): Promise<ShutdownLock> {
  const reason = 'Kubelet needs time to handle node shutdown';
  const args = [
    '--what=shutdown',
    '--mode=delay',
    '--who=kubelet',
    `--why=${reason}`,
    '--',
    'sh',
    '-c',
    'echo; exec cat',
  ];
  const child = spawn(program, args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
  });
  const held = Promise.withResolvers<void>();
  child.on('error', (error) => held.reject(new CodedError('systemd', `${program}: ${error.message}`)));
  // A child that could not be started for lack of file descriptors has no streams.
  if (child.pid === undefined) await held.promise;
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    if (output.length < 1_000) output += text;
  });
  child.stdin.on('error', () => {});
  // The program runs, and echoes, only while it holds the lock.
  child.stdin.write('\n');
  child.stdout.once('data', () => held.resolve());
  child.on('close', () => held.reject(new CodedError('systemd', `${program}: ${output.trim() || 'ended early'}`)));
  held.promise.catch(ignore('awaited below'));
  await held.promise;
  child.stdout.resume();
  return { release: () => void child.stdin.end() };
}

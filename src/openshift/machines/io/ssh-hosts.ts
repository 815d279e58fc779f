/** Connects to hosts with OpenSSH's ssh(1) and scp(1). Only one given host key is accepted. */
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError } from '../../../base/errors.ts';
import type { SshTarget } from '../machines-port.ts';

export interface SshSession {
  /**
   * Runs a command in the remote shell and resolves with its output. The command must be a constant of this program.
   * Throws CodedError 'ssh' with the address and the last line of the error output.
   */
  run(command: string, options?: { readonly input?: string; readonly timeoutMs?: number }): Promise<string>;
  /** Copies a local file to the host. */
  copy(from: string, to: string): Promise<void>;
  close(): Promise<void>;
}

const CONNECT_S = 10;
const COMMAND_MS = 60_000;
const COPY_MS = 600_000;
const MAX_OUTPUT = 1 << 20;

/** Prepares a session. `directory`: directory on a tmpfs that stores the private key during the session. */
export async function openSsh({ address, privateKey, hostKey }: SshTarget, directory: string): Promise<SshSession> {
  const own = await mkdtemp(join(directory, 'ssh-'));
  const identity = join(own, 'identity');
  const known = join(own, 'known_hosts');
  const { user, host, port } = address;
  const close = (): Promise<void> => rm(own, { recursive: true, force: true });
  try {
    await chmod(own, 0o700);
    await writeFile(identity, privateKey, { mode: 0o600 });
    // The known_hosts file uses an alias as host name, so that the key is found for every spelling of the address.
    await writeFile(known, `pinned ${hostKey}\n`, { mode: 0o600 });
  } catch (error) {
    await close();
    throw error;
  }
  const options = [
    ...['-F', '/dev/null', '-i', identity],
    ...[
      'BatchMode=yes',
      'StrictHostKeyChecking=yes',
      'HostKeyAlias=pinned',
      `UserKnownHostsFile=${known}`,
      'GlobalKnownHostsFile=/dev/null',
      'UpdateHostKeys=no',
      'IdentitiesOnly=yes',
      'IdentityAgent=none',
      'PasswordAuthentication=no',
      'KbdInteractiveAuthentication=no',
      'ForwardAgent=no',
      'ForwardX11=no',
      'PermitLocalCommand=no',
      'ControlPath=none',
      `ConnectTimeout=${CONNECT_S}`,
      'ServerAliveInterval=10',
      'ServerAliveCountMax=3',
    ].flatMap((option) => ['-o', option]),
  ];
  const remote = `${host.includes(':') ? `[${host}]` : host}`;
  const at = `ssh://${user}@${remote}:${port}`;
  return {
    run: (command, { input, timeoutMs = COMMAND_MS } = {}) =>
      program('ssh', [...options, '-p', String(port), '-l', user, '--', host, command], at, timeoutMs, input),
    copy: async (from, to) => {
      await program('scp', [...options, '-q', '-P', String(port), '--', from, `${user}@${remote}:${to}`], at, COPY_MS);
    },
    close,
  };
}

function program(file: string, args: readonly string[], at: string, timeout: number, input?: string): Promise<string> {
  const env = { PATH: process.env['PATH'] ?? '/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C.UTF-8', HOME: '/nonexistent' };
  return new Promise((resolve, reject) => {
    const options = { env, timeout, maxBuffer: MAX_OUTPUT, killSignal: 'SIGKILL' as const };
    const child = execFile(file, args, options, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout);
      const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
      const last = stderr.trim().split('\n').at(-1) ?? '';
      const why = missing
        ? `${file} is not installed on this master; run apt-get install openssh-client`
        : child.killed
          ? `no end within ${timeout / 1000} s`
          : last.replaceAll(/\p{C}/gu, ' ') || error.message;
      reject(new CodedError('ssh', `${at}: ${why.slice(0, 500)}`));
    });
    // If the connection closes, the exit code reports it, so the write error is ignored.
    child.stdin?.on('error', () => {});
    child.stdin?.end(input ?? '');
  });
}

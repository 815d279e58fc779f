/** Hosts over SSH, with OpenSSH's own server on loopback if it is installed. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { openSsh } from '../../../../src/openshift/machines/io/ssh-hosts.ts';
import type { SshTarget } from '../../../../src/openshift/machines/machines-port.ts';

const run = promisify(execFile);
const SSHD = '/usr/sbin/sshd';
const skip = existsSync(SSHD) && userInfo().uid === 0 ? false : 'no sshd, or not root';

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' ? (address?.port ?? 0) : 0));
    });
  });

describe('hosts over SSH', { skip }, () => {
  let directory: string;
  let server: ChildProcess;
  let target: SshTarget;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'he-ssh-'));
    for (const name of ['host', 'other', 'client'])
      await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(directory, name)]);
    const port = await freePort();
    await writeFile(join(directory, 'authorized'), await readFile(join(directory, 'client.pub')), { mode: 0o600 });
    await mkdir('/run/sshd', { recursive: true });
    const options = [
      `HostKey=${join(directory, 'host')}`,
      `AuthorizedKeysFile=${join(directory, 'authorized')}`,
      'StrictModes=no',
      'UsePAM=no',
      'PermitRootLogin=prohibit-password',
      `PidFile=${join(directory, 'pid')}`,
      'Subsystem=sftp internal-sftp',
    ].flatMap((option) => ['-o', option]);
    const listen = ['-o', 'ListenAddress=127.0.0.1', '-p', String(port)];
    server = spawn(SSHD, ['-D', '-e', '-f', '/dev/null', ...listen, ...options], { stdio: 'ignore' });
    target = {
      address: { user: 'root', host: '127.0.0.1', port },
      privateKey: await readFile(join(directory, 'client'), 'utf8'),
      hostKey: (await readFile(join(directory, 'host.pub'), 'utf8')).trim(),
    };
    for (let tries = 0; tries < 50; tries += 1) {
      const answer = await run('ssh-keyscan', ['-p', String(port), '127.0.0.1']).catch(() => ({ stdout: '' }));
      if (answer.stdout.includes('ssh-')) return;
    }
    throw new Error('sshd does not answer');
  });
  after(async () => {
    server?.kill('SIGTERM');
    await rm(directory, { recursive: true, force: true });
  });

  test('sends commands, standard input and files to the host with the pinned host key', async () => {
    const session = await openSsh(target, directory);
    try {
      assert.equal(await session.run('cat', { input: 'secret\n' }), 'secret\n');
      await session.copy(join(directory, 'authorized'), join(directory, 'copied'));
      assert.equal(
        await readFile(join(directory, 'copied'), 'utf8'),
        await readFile(join(directory, 'client.pub'), 'utf8'),
      );
      await assert.rejects(session.run('echo first >&2; echo wrong disk >&2; exit 3'), {
        code: 'ssh',
        message: `ssh://root@127.0.0.1:${target.address.port}: wrong disk`,
      });
      await assert.rejects(session.run('sleep 30', { timeoutMs: 500 }), /no end within 0\.5 s/);
    } finally {
      await session.close();
    }
    assert.deepEqual(
      (await readdir(directory)).filter((name) => name.startsWith('ssh-')),
      [],
      'no key is left',
    );
  });

  test('runs no command on a host with a host key other than the pinned one', async () => {
    const hostKey = (await readFile(join(directory, 'other.pub'), 'utf8')).trim();
    const session = await openSsh({ ...target, hostKey }, directory);
    const marker = join(directory, 'marker');
    await assert.rejects(session.run(`touch ${marker}`), /Host key verification failed/);
    await session.close();
    assert.equal(existsSync(marker), false);
  });

  test('fails for an SSH key that the host does not authorize, without a password prompt', async () => {
    const privateKey = await readFile(join(directory, 'other'), 'utf8');
    const session = await openSsh({ ...target, privateKey }, directory);
    await assert.rejects(session.run('true'), /Permission denied/);
    await session.close();
  });
});

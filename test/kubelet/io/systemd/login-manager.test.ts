/** The login manager with a simulated bus. test/lab/shutdown.test.ts uses a real one. */
import assert from 'node:assert/strict';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLoginManager } from '../../../../src/kubelet/io/systemd/index.ts';
import type { LoginManager } from '../../../../src/kubelet/shutdown/port.ts';
import { decodeMessage, ERROR, METHOD_RETURN, type Message, SIGNAL } from '../../../../src/wire/dbus/dbus-messages.ts';
import { encodeReply } from './reply.ts';

const OWNER = ':1.7';

const prepare = (begins: boolean, sender: string): Buffer =>
  encodeReply({
    type: SIGNAL,
    serial: 0,
    member: 'PrepareForShutdown',
    sender,
    signature: 'b',
    body: (body) => body.boolean(begins),
  });

describe('the login manager', () => {
  let directory: string;
  let server: Server;
  let sockets: Socket[];
  let calls: string[];
  let hups: string[];
  let delaySeconds: number;

  const answer = (call: Message, serial: number): Buffer => {
    const reply = { type: METHOD_RETURN, serial };
    if (call.member === 'GetNameOwner') return encodeReply({ ...reply, signature: 's', body: (b) => b.string(OWNER) });
    if (call.member !== 'Get') return encodeReply(reply);
    const micros = BigInt(delaySeconds * 1_000_000);
    return encodeReply({ ...reply, signature: 'v', body: (b) => b.variant('t', () => b.uint64(micros)) });
  };

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'he-login-'));
    sockets = [];
    calls = [];
    hups = [];
    delaySeconds = 5;
    server = createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => {});
      let bytes: Buffer = Buffer.alloc(0);
      let greeted = false;
      socket.on('data', (part) => {
        bytes = Buffer.concat([bytes, part]);
        if (!greeted) {
          const end = bytes.indexOf('BEGIN\r\n');
          if (end < 0) return;
          assert.ok(bytes.includes('AUTH EXTERNAL'));
          socket.write('OK 0123456789abcdef0123456789abcdef\r\n');
          greeted = true;
          bytes = bytes.subarray(end + 7);
        }
        for (let next = decodeMessage(bytes); next !== undefined; next = decodeMessage(bytes)) {
          const serial = bytes.readUInt32LE(8);
          bytes = bytes.subarray(next.end);
          calls.push(next.message.member);
          socket.write(answer(next.message, serial));
        }
      });
    });
    await new Promise<void>((resolve) => server.listen(join(directory, 'bus'), resolve));
    // A fake systemd-inhibit, which holds a lock while the program after `--` runs.
    const inhibit = join(directory, 'inhibit');
    await writeFile(
      inhibit,
      `#!/bin/sh\necho "$@" > ${directory}/lock\nwhile [ "$1" != -- ]; do shift; done\nshift\n"$@"\nrm ${directory}/lock\n`,
    );
    await chmod(inhibit, 0o755);
  });

  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
    await rm(directory, { recursive: true, force: true });
  });

  const login = (): LoginManager =>
    createLoginManager({
      bus: join(directory, 'bus'),
      dropIn: join(directory, 'conf.d/99-kubelet.conf'),
      inhibit: join(directory, 'inhibit'),
      manager: {
        call: async (member) => {
          hups.push(member);
          delaySeconds = 30;
        },
        job: async () => {},
        property: async () => '',
      },
    });

  it('raises the inhibitor delay of logind by a drop-in and a reload', async () => {
    const manager = login();
    assert.equal(await manager.maxDelayMs(), 5_000);
    await manager.raiseMaxDelay(30_000);
    assert.equal(await manager.maxDelayMs(), 30_000);
    assert.deepEqual(hups, ['KillUnit']);
    assert.match(
      await readFile(join(directory, 'conf.d/99-kubelet.conf'), 'utf8'),
      /\[Login]\nInhibitDelayMaxSec=30\n/,
    );
  });

  it('reports a shutdown and its cancellation only if the signal comes from the login manager', async () => {
    const heard: boolean[] = [];
    const signals = await login().follow((begins) => heard.push(begins));
    assert.ok(calls.includes('AddMatch'));
    const [socket] = sockets;
    socket?.write(prepare(true, ':1.99'));
    await sleep(50);
    assert.deepEqual(heard, []);
    socket?.write(Buffer.concat([prepare(true, OWNER), prepare(false, OWNER)]));
    while (heard.length < 2) await sleep(5);
    assert.deepEqual(heard, [true, false]);
    socket?.destroy();
    await signals.lost;
  });

  it('keeps an inhibitor lock of the login manager until its release', async () => {
    const lock = await login().lock();
    const held = await readFile(join(directory, 'lock'), 'utf8');
    assert.match(held, /^--what=shutdown --mode=delay --who=kubelet /);
    lock.release();
    while ((await readFile(join(directory, 'lock'), 'utf8').catch(() => '')) !== '') await sleep(5);
  });

  it('fails with the error of the bus, or of the program that takes the lock', async () => {
    const refused = createServer((socket) => {
      socket.on('error', () => {});
      socket.end(encodeReply({ type: ERROR, serial: 1 }));
    });
    await new Promise<void>((resolve) => refused.listen(join(directory, 'other'), resolve));
    await assert.rejects(createLoginManager({ bus: join(directory, 'other') }).maxDelayMs(), { code: 'systemd' });
    refused.close();
    await assert.rejects(createLoginManager({ bus: join(directory, 'none') }).maxDelayMs(), { code: 'systemd' });
    await writeFile(join(directory, 'inhibit'), '#!/bin/sh\necho "Access denied" >&2\nexit 1\n');
    await assert.rejects(login().lock(), { code: 'systemd', message: /Access denied/ });
  });
});

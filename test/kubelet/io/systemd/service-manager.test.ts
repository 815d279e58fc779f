/**
 * Calls to systemd with a simulated server, which produces orders of events that are rare with a real one. The lab uses
 * a real one.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createServiceManager } from '../../../../src/kubelet/io/systemd/index.ts';
import {
  decodeMessage,
  ERROR,
  encodeCall,
  METHOD_RETURN,
  type Message,
  Reader,
  SIGNAL,
  Writer,
} from '../../../../src/wire/dbus/dbus-messages.ts';
import { createManagerBus } from '../../../../src/wire/dbus/systemd-manager.ts';
import { encodeReply } from './reply.ts';

const GREETING = 'OK 0123456789abcdef0123456789abcdef\r\n';
const JOB = '/org/freedesktop/systemd1/job/7';

const jobReply = (serial: number): Buffer =>
  encodeReply({ type: METHOD_RETURN, serial, signature: 'o', body: (body) => body.string(JOB) });

const jobRemoved = (result: string): Buffer =>
  encodeReply({
    type: SIGNAL,
    serial: 0,
    member: 'JobRemoved',
    signature: 'uoss',
    body: (body) => {
      body.uint32(7);
      body.string(JOB);
      body.string('x.slice');
      body.string(result);
    },
  });

const failure = (serial: number, name: string): Buffer =>
  encodeReply({
    type: ERROR,
    serial,
    errorName: `org.freedesktop.systemd1.${name}`,
    signature: 's',
    body: (body) => body.string('Unit x.slice is so.'),
  });

describe('calls to systemd', () => {
  let directory: string;
  let server: Server;
  let path: string;
  let calls: string[];
  let connections: number;
  let sockets: Socket[];
  let answer: (socket: Socket, call: Message, serial: number) => void;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'he-bus-'));
    path = join(directory, 'private');
    calls = [];
    connections = 0;
    sockets = [];
    answer = (socket, _, serial) => socket.write(jobReply(serial));
    server = createServer((socket) => {
      connections += 1;
      sockets.push(socket);
      socket.on('error', () => {});
      let bytes: Buffer = Buffer.alloc(0);
      let greeted = false;
      socket.on('data', (part) => {
        bytes = Buffer.concat([bytes, part]);
        if (!greeted) {
          const end = bytes.indexOf('BEGIN\r\n');
          if (end < 0) return;
          // systemd does not process data that it reads together with the handshake until more data arrives.
          assert.equal(bytes.length, end + 7, 'a call came together with the greeting');
          bytes = Buffer.alloc(0);
          greeted = true;
          socket.write(GREETING);
          return;
        }
        for (let next = decodeMessage(bytes); next !== undefined; next = decodeMessage(bytes)) {
          const serial = bytes.readUInt32LE(8);
          bytes = bytes.subarray(next.end);
          calls.push(next.message.member);
          answer(socket, next.message, serial);
        }
      });
    });
    await new Promise<void>((resolve) => server.listen(path, resolve));
  });

  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
    await rm(directory, { recursive: true, force: true });
  });

  const manager = () => createServiceManager(createManagerBus(path));

  it('a call to systemd waits for its job, even if the reply and the end of the job arrive together', async () => {
    answer = (socket, _, serial) => socket.write(Buffer.concat([jobReply(serial), jobRemoved('done')]));
    await manager().ensure('x.slice', [{ name: 'CPUShares', value: 100n }]);
    assert.deepEqual(calls, ['StartTransientUnit']);
  });

  it('treats the end of the job, not the reply, as completion, and reports the result of the job', async () => {
    let ended = false;
    answer = (socket, _, serial) => {
      socket.write(jobReply(serial));
      setTimeout(() => {
        ended = true;
        socket.write(jobRemoved('timeout'));
      }, 30);
    };
    await assert.rejects(manager().stop('x.slice'), { code: 'systemd', message: /StopUnit: the job ended as timeout/ });
    assert.ok(ended);
  });

  it('completes two calls for which systemd starts the same job', async () => {
    let requested = 0;
    answer = (socket, _, serial) => {
      socket.write(jobReply(serial));
      requested += 1;
      if (requested === 2) socket.write(jobRemoved('done'));
    };
    const systemd = manager();
    await Promise.all([systemd.stop('x.slice'), systemd.stop('x.slice')]);
  });

  it('sets new properties of an existing slice and detects that the slice is active', async () => {
    answer = (socket, call, serial) => {
      if (call.member === 'StartTransientUnit') socket.write(failure(serial, 'UnitExists'));
      else if (call.member === 'SetUnitProperties') socket.write(encodeReply({ type: METHOD_RETURN, serial }));
      else socket.write(Buffer.concat([jobReply(serial), jobRemoved('done')]));
    };
    await manager().ensure('x.slice', [{ name: 'MemoryMax', value: 5n }]);
    assert.deepEqual(calls, ['StartTransientUnit', 'SetUnitProperties', 'StartUnit']);
  });

  it('treats a missing slice as stopped, and reports other errors with the message of systemd', async () => {
    answer = (socket, _, serial) => socket.write(failure(serial, 'NoSuchUnit'));
    const systemd = manager();
    await systemd.stop('x.slice');
    answer = (socket, _, serial) => socket.write(failure(serial, 'ShuttingDown'));
    await assert.rejects(systemd.stop('x.slice'), { code: 'systemd', message: 'StopUnit: Unit x.slice is so.' });
    assert.equal(connections, 1, 'a connection serves many calls');
  });

  it('fails pending calls when the connection breaks, and reconnects for the next call', async () => {
    answer = (socket) => socket.destroy();
    const systemd = manager();
    await assert.rejects(systemd.stop('x.slice'), { code: 'systemd' });
    answer = (socket, _, serial) =>
      socket.write(
        encodeReply({
          type: METHOD_RETURN,
          serial,
          signature: 'v',
          body: (body) => body.variant('s', () => body.string('stopping')),
        }),
      );
    assert.equal(await systemd.goingDown(), true);
  });

  it('rejects data that is not D-Bus, and truncated messages', async () => {
    answer = (socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n');
    await assert.rejects(manager().stop('x.slice'), { code: 'systemd' });
    answer = (socket, _, serial) =>
      socket.write(encodeReply({ type: METHOD_RETURN, serial, signature: 'o', body: (body) => body.uint32(5000) }));
    await assert.rejects(manager().stop('x.slice'), { code: 'systemd', message: /ends too early/ });
    assert.throws(() => decodeMessage(Buffer.from('6c01000100000001000000010000ffff'.padEnd(64, '0'), 'hex')), {
      code: 'systemd',
    });
  });

  it('a call to systemd rejects if there is no server', async () => {
    await assert.rejects(createServiceManager(createManagerBus(join(directory, 'none'))).stop('x.slice'), {
      code: 'systemd',
      message: /none/,
    });
  });
});

describe('wire format of D-Bus', () => {
  it('D-Bus messages align values as the specification requires', () => {
    const writer = new Writer();
    writer.byte(1);
    writer.uint32(2);
    writer.string('ab');
    writer.array(8, () => writer.uint64(3n));
    assert.equal(
      writer.result.toString('hex'),
      ['01000000', '02000000', '02000000', '616200', '00', '08000000', '00000000', '0300000000000000'].join(''),
    );
    const reader = new Reader(writer.result);
    assert.deepEqual([reader.byte(), reader.uint32(), reader.string(), reader.uint32()], [1, 2, 'ab', 8]);
  });

  it('parses a D-Bus message only when the complete message has arrived', () => {
    const whole = encodeCall({
      serial: 9,
      destination: 'd.e',
      path: '/p',
      interface: 'i.f',
      member: 'Member',
      signature: '',
      body: Buffer.alloc(0),
    });
    for (let size = 0; size < whole.length; size++) assert.equal(decodeMessage(whole.subarray(0, size)), undefined);
    assert.equal(decodeMessage(Buffer.concat([whole, whole]))?.end, whole.length);
    assert.equal(decodeMessage(whole)?.message.member, 'Member');
  });
});

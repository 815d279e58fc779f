/** Consoles and power of rigs on a simulated host. */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { beforeEach, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { silentLog } from '../../../src/base/log.ts';
import type { KubeletRequest } from '../../../src/kubelet/server/port.ts';
import { RigRequests } from '../../../src/kubelet/server/rigs.ts';
import { type Route, routeOf } from '../../../src/kubelet/server/routes.ts';
import type { RigHost } from '../../../src/rigs/rig-host-port.ts';
import type { ByteStream, ProcessStreams } from '../../../src/runtime/port.ts';
import { ManualClock } from '../../client/clocks.ts';

let opened: { readonly path: string; isClosed: boolean; ready: () => void }[];
let switched: { readonly command: string; end: () => void }[];
let sessions: Promise<PromiseSettledResult<ProcessStreams>>[];
let requests: RigRequests;

beforeEach(() => {
  [opened, switched, sessions] = [[], [], []];
  const host: Partial<RigHost> = {
    async openSerial(path) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const line = { path, isClosed: false, ready: resolve };
      opened.push(line);
      await promise;
      const stream: Partial<ByteStream> = {
        readable: new PassThrough(),
        destroy() {
          line.isClosed = true;
        },
      };
      return stream as ByteStream;
    },
    record: async () => ({ write: async () => {}, close: async () => {} }),
    runPower: (command) => {
      const { promise, resolve } = Promise.withResolvers<string>();
      switched.push({ command, end: () => resolve(command) });
      return promise;
    },
  };
  const fixture = (name: string) => ({ name, node: { hostPath: `/dev/${name}` } }) as never;
  requests = new RigRequests({
    devices: { rigHost: host as RigHost, fixture },
    streaming: {
      handleRemoteCommand: async (_request, _socket, _head, wanted, open) => {
        sessions.push(Promise.allSettled([open(wanted)]).then(([result]) => result));
      },
    },
    clock: new ManualClock(),
    log: silentLog,
  });
});

const routeFor = (path: string): Route => {
  const route = routeOf('POST', path);
  assert.ok(route);
  return route;
};
const open = (rig: string) =>
  requests.console(
    routeFor(`/rigs/${rig}/console?fixture=ttyS0`),
    {} as KubeletRequest,
    new PassThrough(),
    Buffer.of(),
  );
const power = (command: string, signal = new AbortController().signal) =>
  requests.power(routeFor(`/rigs/bench/power?command=${command}`), signal);

test('keeps only the latest of several consoles that are opened for a device at the same time', async () => {
  for (const rig of ['bench', 'bench', 'other']) await open(rig);
  // The lines open in another order than they were requested.
  for (const index of [2, 0, 1]) {
    opened[index]?.ready();
    await turn();
  }
  const results = await Promise.all(sessions);
  assert.deepEqual(
    results.map(({ status }) => status),
    ['rejected', 'rejected', 'fulfilled'],
  );
  assert.deepEqual(
    opened.map(({ isClosed }) => isClosed),
    [true, true, false],
  );
  await open('bench');
  opened[3]?.ready();
  await sessions[3];
  assert.equal(opened[2]?.isClosed, true);
});

test('executes the power requests of a rig one after the other, and skips those of disconnected clients', async () => {
  const client = new AbortController();
  const all = [power('one'), power('two', client.signal), power('three')];
  const results = Promise.allSettled(all);
  await turn();
  assert.deepEqual(
    switched.map(({ command }) => command),
    ['one'],
  );
  client.abort();
  switched[0]?.end();
  await turn();
  assert.deepEqual(
    switched.map(({ command }) => command),
    ['one', 'three'],
  );
  switched[1]?.end();
  assert.deepEqual(
    (await results).map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
});

test('rejects power requests of a rig while four have not ended', async () => {
  const all = Array.from({ length: 4 }, (_, index) => power(`n${index}`));
  await assert.rejects(async () => power('more'), { code: 429 });
  for (let index = 0; index < 4; index += 1) {
    await turn();
    switched[index]?.end();
  }
  await Promise.all(all);
  const last = power('last');
  await turn();
  switched[4]?.end();
  assert.equal(await last, 'last');
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CodedError } from '../../../src/base/errors.ts';
import { silentLog } from '../../../src/base/log.ts';
import { errorAnswer } from '../../../src/kubelet/server/http-error.ts';
import { RecordingRequests } from '../../../src/kubelet/server/recording-requests.ts';
import { routeOf } from '../../../src/kubelet/server/routes.ts';
import type { RigHost } from '../../../src/rigs/rig-host-port.ts';
import { ManualClock } from '../../client/clocks.ts';

const FILE = '2026-01-01T000000-000Z.log';

test('recordings of rigs require the permission to run commands, for each method', () => {
  for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'POST']) {
    const route = routeOf(method, '/rigs/bench/recordings');
    assert.deepEqual([route?.name, route?.verb, route?.subresources], ['rigRecordings', 'create', ['proxy']]);
    assert.equal(route?.methods.includes(method), method === 'POST', method);
  }
  for (const path of [
    '/rigs/%2e%2e/recordings',
    '/rigs/a%2fb/recordings',
    '/rigs/bench/recordings/x',
    '/rigs//recordings',
  ])
    assert.equal(routeOf('POST', path), undefined, path);
});

suite('recordings over HTTP', () => {
  let clock: ManualClock;
  let host: Partial<RigHost>;
  let port: number;
  let requests: RecordingRequests;
  const server = createServer((request, response) => {
    const route = routeOf(request.method ?? '', request.url ?? '');
    assert.ok(route);
    const aborter = new AbortController();
    response.once('close', () => aborter.abort());
    requests.serve(route, response, aborter.signal).catch((error: unknown) => {
      if (response.headersSent) return response.destroy();
      const { code, message } = errorAnswer(error);
      return response.writeHead(code).end(message);
    });
  });

  beforeEach(async () => {
    clock = new ManualClock();
    host = {};
    requests = new RecordingRequests({ devices: { rigHost: host as RigHost }, clock, log: silentLog });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    ({ port } = server.address() as AddressInfo);
  });
  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  async function post(query = ''): Promise<IncomingMessage> {
    const request = send({ port, path: `/rigs/bench/recordings${query}`, method: 'POST', agent: false }).end();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return response;
  }

  test('sends four recordings at once, rejects a fifth, and closes the connections of stalled readers', async () => {
    const contents: PassThrough[] = [];
    const closed: string[] = [];
    host.openRecording = async (rig, name) => {
      assert.deepEqual([rig, name], ['bench', FILE]);
      const content = new PassThrough();
      content.write('part');
      contents.push(content);
      return { name, bytes: 8, content, close: () => closed.push(name) };
    };
    host.recordings = async () => [];
    const responses = await Promise.all(Array.from({ length: 4 }, () => post(`?file=${FILE}`)));
    assert.deepEqual(
      ['content-length', 'content-disposition', 'x-content-type-options', 'cache-control'].map(
        (name) => responses[0]?.headers[name],
      ),
      ['8', `attachment; filename="${FILE}"`, 'nosniff', 'no-store'],
    );
    const rejected = await post();
    assert.deepEqual([rejected.statusCode, /at most 4/.test(await text(rejected))], [429, true]);
    contents[0]?.end('rest');
    assert.equal(await text(responses[0] as IncomingMessage), 'partrest');
    const reads = responses.slice(1).map((response) => assert.rejects(text(response), /aborted/));
    while (closed.length < 4) {
      await sleep(10);
      // A part that was written may arrive late and restart the time limit.
      await clock.advance(60_000);
    }
    await Promise.all(reads);
    assert.equal(closed.length, 4);
    const list = await post();
    assert.deepEqual([list.statusCode, JSON.parse(await text(list))], [200, { items: [] }]);
  });

  test('answers with 404 for a missing recording and on a node without rigs', async () => {
    host.openRecording = async () => {
      throw new CodedError('not-found', 'no such recording');
    };
    const missing = await post('?file=x');
    assert.deepEqual([missing.statusCode, await text(missing)], [404, 'no such recording']);
    requests = new RecordingRequests({ devices: undefined, clock, log: silentLog });
    assert.equal((await post()).statusCode, 404);
  });
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CodedError } from '../../../src/base/errors.ts';
import { silentLog } from '../../../src/base/log.ts';
import type { HostAdministration } from '../../../src/kubelet/ports/administration-port.ts';
import { AdministrationRequests } from '../../../src/kubelet/server/administration-requests.ts';
import { errorAnswer } from '../../../src/kubelet/server/http-error.ts';
import { routeOf } from '../../../src/kubelet/server/routes.ts';
import { ManualClock } from '../../client/clocks.ts';

const NAME = 'etcd-42-20260102T030405Z.db';

describe('paths below /hyperedge/', () => {
  it('paths below /hyperedge/ require the permission to run commands, except for the path of the state', () => {
    const rights = (method: string, path: string): readonly unknown[] => {
      const route = routeOf(method, path);
      return [route?.name, route?.verb, route?.methods.includes(method), route?.subresources];
    };
    assert.deepEqual(rights('GET', '/hyperedge/store'), ['storeState', 'get', true, ['proxy']]);
    assert.deepEqual(rights('GET', '/hyperedge/snapshots'), ['snapshots', 'get', true, ['proxy']]);
    assert.deepEqual(rights('POST', '/hyperedge/store'), ['storeState', 'create', false, ['proxy']]);
    assert.deepEqual(rights('POST', '/hyperedge/snapshots'), ['snapshots', 'create', true, ['proxy']]);
    assert.deepEqual(rights('POST', '/hyperedge/images'), ['imageUploads', 'create', true, ['proxy']]);
    assert.deepEqual(rights('POST', '/hyperedge/bundles'), ['bundleUploads', 'create', true, ['proxy']]);
    assert.deepEqual(rights('GET', '/hyperedge/restart'), ['restarts', 'get', true, ['proxy']]);
    assert.deepEqual(rights('POST', '/hyperedge/restart'), ['restarts', 'create', true, ['proxy']]);
    for (const method of ['PUT', 'PATCH', 'DELETE']) assert.equal(rights(method, '/hyperedge/restart')?.[2], false);
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS'])
      assert.deepEqual(rights(method, `/hyperedge/snapshots/${NAME}`), ['snapshot', 'create', false, ['proxy']]);
  });

  it('paths below /hyperedge/ with invalid snapshot names return 404', () => {
    assert.equal(routeOf('POST', `/hyperedge/snapshots/${NAME}`)?.container, NAME);
    for (const path of [
      '/hyperedge/',
      '/hyperedge/snapshots/',
      '/hyperedge/snapshots/..%2f..%2fetc%2fshadow.db',
      '/hyperedge/snapshots/%2e%2e',
      '/hyperedge/snapshots/..db',
      '/hyperedge/snapshots/.snapshot-1-0123abcd.part',
      '/hyperedge/snapshots/a%00.db',
      '/hyperedge/snapshots/a%0d%0a.db',
      '/hyperedge/snapshots/a%22.db',
      `/hyperedge/snapshots/${NAME}/more`,
      `/hyperedge/snapshots/${'a'.repeat(300)}.db`,
      '/hyperedge/images/name',
      '/hyperedge/restart/api',
      '/hyperedge/other',
    ])
      assert.equal(routeOf('POST', path), undefined, path);
  });
});

describe('administration over HTTP', { timeout: 60_000 }, () => {
  let clock: ManualClock;
  let host: Partial<HostAdministration>;
  let port: number;
  const server = createServer((request, response) => {
    const requests = new AdministrationRequests({ administration: host as HostAdministration, clock, log: silentLog });
    const route = routeOf(request.method ?? '', request.url ?? '');
    assert.ok(route);
    const aborter = new AbortController();
    response.once('close', () => aborter.abort());
    requests.serve(route, request, response, aborter.signal).catch((error: unknown) => {
      if (response.headersSent) return response.destroy();
      const { code, message } = errorAnswer(error);
      response.writeHead(code).end(message);
      request.resume();
      return undefined;
    });
  });

  beforeEach(async () => {
    clock = new ManualClock();
    host = {};
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    ({ port } = server.address() as AddressInfo);
  });
  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  async function post(path: string, body: string | Readable = ''): Promise<IncomingMessage> {
    const request = send({ port, path, method: 'POST', agent: false });
    if (typeof body === 'string') request.end(body);
    else body.pipe(request);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return response;
  }
  const linesOf = async (response: IncomingMessage): Promise<unknown[]> =>
    (await text(response))
      .trim()
      .split('\n')
      .map((line): unknown => JSON.parse(line));

  it('sends a snapshot as a file with its length, and then accepts the next download', async () => {
    let closed = 0;
    host.openSnapshot = async (name) => ({
      name,
      bytes: 7,
      content: Readable.from([Buffer.from('content')]),
      close: () => {
        closed += 1;
      },
    });
    const response = await post(`/hyperedge/snapshots/${NAME}`);
    assert.equal(response.headers['content-length'], '7');
    assert.equal(response.headers['content-disposition'], `attachment; filename="${NAME}"`);
    assert.equal(response.headers['x-content-type-options'], 'nosniff');
    assert.equal(await text(response), 'content');
    assert.equal(closed, 1);
  });

  it('a snapshot download breaks the connection when the file ends early or the reader stalls', async () => {
    for (const failure of ['file', 'reader'] as const) {
      const content = new PassThrough();
      content.write('part');
      let isClosed = false;
      const close = (): void => {
        isClosed = true;
      };
      host.openSnapshot = async (name) => ({ name, bytes: 7, content, close });
      const response = await post(`/hyperedge/snapshots/${NAME}`);
      const read = assert.rejects(text(response), /aborted/);
      if (failure === 'file') content.destroy(new Error('disk'));
      while (!isClosed) {
        await sleep(10);
        // The part that was written may arrive late and restart the time limit.
        if (failure === 'reader') await clock.advance(60_000);
      }
      await read;
    }
  });

  it('a refused request receives its HTTP status before the first line of output', async () => {
    host.saveSnapshot = async () => {
      throw new CodedError('busy', 'a snapshot is being saved');
    };
    host.importUpload = async () => {
      throw new CodedError('no-space', 'no space');
    };
    host.openSnapshot = async () => {
      throw new CodedError('not-found', 'no such snapshot');
    };
    const statuses = ['/hyperedge/snapshots', '/hyperedge/images', `/hyperedge/snapshots/${NAME}`];
    assert.deepEqual(
      await Promise.all(statuses.map(async (path) => (await post(path, 'x')).statusCode)),
      [429, 507, 404],
    );
    const named = await post('/hyperedge/bundles?name=x', 'x');
    assert.deepEqual(
      [named.statusCode, await text(named)],
      [400, 'name: not allowed for a bundle, which contains its name; omit the parameter'],
    );
  });

  it('sends the progress of a snapshot in lines; the last line is the result or the error', async () => {
    for (const outcome of ['result', 'error'] as const) {
      // A timer that the last request has left must not be taken for one of this request.
      clock = new ManualClock();
      const saved = Promise.withResolvers<object>();
      host.saveSnapshot = () => saved.promise;
      host.savedBytes = async () => 17;
      const requested = post('/hyperedge/snapshots');
      const pending = async (): Promise<void> => {
        while (clock.pendingTimers === 0) await sleep(5);
      };
      await pending();
      await clock.advance(250);
      const response = await requested;
      await pending();
      await clock.advance(1_000);
      await pending();
      if (outcome === 'result') saved.resolve({ revision: 43 });
      else saved.reject(new Error('no space left on the device'));
      const lines = await linesOf(response);
      const last = outcome === 'result' ? { result: { revision: 43 } } : { error: 'no space left on the device' };
      assert.deepEqual(lines, [{ stage: 'saving', bytes: 17 }, last]);
    }
  });

  it('sends the ID of a restart at once, and the outcome of the restart as the last line', async () => {
    const restart = { id: '1', component: 'api', startedAt: 't' };
    host.restart = async () => ({ restart, ended: Promise.resolve({ ...restart, endedAt: 't' }) });
    const first = { stage: 'restarting', ...restart };
    assert.deepEqual(await linesOf(await post('/hyperedge/restart?component=api')), [
      first,
      { result: { ...restart, endedAt: 't' } },
    ]);
    host.restart = async () => ({
      restart,
      ended: Promise.resolve({ ...restart, endedAt: 't', error: 'api: failed' }),
    });
    assert.deepEqual(await linesOf(await post('/hyperedge/restart?component=api')), [first, { error: 'api: failed' }]);
  });

  it('refuses a restart without one component name with 400, during a restart with 429 and during an update with 409', async () => {
    host.restart = async (component) => {
      throw new CodedError(component as 'busy', 'refused');
    };
    const statuses = ['', '?component=', '?component=busy&component=busy', '?component=busy', '?component=conflict'];
    assert.deepEqual(
      await Promise.all(statuses.map(async (query) => (await post(`/hyperedge/restart${query}`)).statusCode)),
      [400, 400, 400, 429, 409],
    );
  });

  it('imports an upload with its size and name, and cancels the import when the client disconnects', async () => {
    const seen: unknown[] = [];
    host.importUpload = async ({ kind, body, bytes, name }, _signal, onReceived) => {
      seen.push(kind, bytes, name, await text(body));
      onReceived();
      return { images: [] };
    };
    const response = await post('/hyperedge/images?name=app%3A1', 'archive');
    assert.deepEqual(await linesOf(response), [{ result: { images: [] } }]);
    assert.deepEqual(seen, ['image', 7, 'app:1', 'archive']);
    const forced: unknown[] = [];
    host.importUpload = async ({ kind, force, body }, _signal, onReceived) => {
      await text(body);
      onReceived();
      forced.push([kind, force]);
      return {};
    };
    for (const query of ['', '?force=true']) await linesOf(await post(`/hyperedge/bundles${query}`, 'archive'));
    assert.deepEqual(forced, [
      ['bundle', false],
      ['bundle', true],
    ]);
    for (const path of ['/hyperedge/images?force=true', '/hyperedge/bundles?force=yes'])
      assert.equal((await post(path, 'archive')).statusCode, 400, path);
    const begun = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    host.importUpload = async (_upload, signal) => {
      begun.resolve();
      await once(signal, 'abort');
      ended.resolve();
      throw new Error('ended');
    };
    const request = send({ port, path: '/hyperedge/images', method: 'POST', headers: { 'content-length': 100 } });
    request.on('error', () => undefined);
    request.write('part');
    await begun.promise;
    request.destroy();
    await ended.promise;
  });

  it('ends an upload whose client sends no or too few bytes, and keeps a slow upload', async () => {
    const aborted = Promise.withResolvers<void>();
    let received = 0;
    let isAborted = false;
    host.importUpload = async ({ body }, signal) => {
      signal.addEventListener('abort', () => {
        isAborted = true;
        body.destroy();
        aborted.resolve();
      });
      for await (const chunk of body) received += (chunk as Buffer).length;
      return {};
    };
    const request = send({ port, path: '/hyperedge/images', method: 'POST', headers: { 'content-length': 1e9 } });
    const failed = once(request, 'error');
    const sent = async (bytes: number): Promise<void> => {
      const wanted = received + bytes;
      request.write(Buffer.alloc(bytes));
      while (received < wanted) await sleep(5);
    };
    await sent(1);
    for (let minute = 0; minute < 3; minute++) {
      await sent(100_000);
      await clock.advance(60_000);
    }
    assert.equal(isAborted, false);
    await sent(10);
    await clock.advance(60_000);
    await aborted.promise;
    await failed;
  });
});

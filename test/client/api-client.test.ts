import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { ConfigMap } from '../../src/api/generated/core/v1.ts';
import { ApiError, isApiError } from '../../src/api/meta/status.ts';
import { resources } from '../../src/api/resources.ts';
import { silentLog } from '../../src/base/log.ts';
import { type ApiClient, type ClientCredentials, createApiClient, isConnectionError } from '../../src/client/index.ts';
import { createAuthority } from './certificates.ts';
import { eventually, ManualClock, systemClock } from './clocks.ts';
import { json, KubeServer } from './kube-server.ts';

describe('API client', () => {
  const authority = createAuthority('test-ca');
  const alice = authority.issue('alice');
  const server = new KubeServer(authority.issue('server', { server: true }), authority.cert);
  const clients: ApiClient[] = [];

  const connect = (options: Partial<Parameters<typeof createApiClient>[0]> = {}): ApiClient => {
    const client = createApiClient({
      server: server.url,
      ca: authority.cert,
      cert: alice.cert,
      key: alice.key,
      userAgent: 'test/1',
      log: silentLog,
      clock: systemClock,
      ...options,
    });
    clients.push(client);
    return client;
  };

  before(() => server.start());
  beforeEach(() => {
    server.intercept = () => false;
    server.seen.length = 0;
  });
  after(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await server.stop();
  });

  it('sends requests with the client certificate to the paths of the API', async () => {
    const maps = connect().resource(resources.configMaps);
    const created = await maps.create({ metadata: { namespace: 'a', name: 'x' }, data: { k: 'v' } });
    assert.equal(created.metadata?.name, 'x');
    assert.deepEqual((await maps.get('x', 'a')).data, { k: 'v' });
    await maps.update(
      { metadata: { namespace: 'a', name: 'x' }, data: { k: 'w' } },
      { fieldManager: 'm', dryRun: true },
    );
    await maps.delete('x', 'a', { propagationPolicy: 'Foreground' });
    assert.deepEqual(
      server.seen.map(({ method, url, commonName }) => [method, url, commonName]),
      [
        ['POST', '/api/v1/namespaces/a/configmaps', 'alice'],
        ['GET', '/api/v1/namespaces/a/configmaps/x', 'alice'],
        ['PUT', '/api/v1/namespaces/a/configmaps/x?fieldManager=m&dryRun=All', 'alice'],
        ['DELETE', '/api/v1/namespaces/a/configmaps/x', 'alice'],
      ],
    );
    assert.deepEqual(server.seen[0]?.body, {
      metadata: { namespace: 'a', name: 'x' },
      data: { k: 'v' },
      apiVersion: 'v1',
      kind: 'ConfigMap',
    });
    assert.deepEqual(server.seen[3]?.body, {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      propagationPolicy: 'Foreground',
    });
  });

  it('sends each patch with the media type of its patch type, and does not escape colons in names', async () => {
    const client = connect();
    server.intercept = (_request, response) => {
      json(response, 200, {});
      return true;
    };
    const roles = client.resource(resources.clusterRoles);
    await roles.patch('system:node', undefined, 'strategic', { a: 1 });
    await roles.patch('a/b', undefined, 'apply', {}, { force: true, fieldManager: 'f' });
    await roles.patch('x', undefined, 'json', []);
    await roles.patch('x', undefined, 'merge', {}, { subresource: 'status' });
    assert.deepEqual(
      server.seen.map(({ url, contentType }) => [url, contentType]),
      [
        ['/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node', 'application/strategic-merge-patch+json'],
        [
          '/apis/rbac.authorization.k8s.io/v1/clusterroles/a%2Fb?fieldManager=f&force=true',
          'application/apply-patch+yaml',
        ],
        ['/apis/rbac.authorization.k8s.io/v1/clusterroles/x', 'application/json-patch+json'],
        ['/apis/rbac.authorization.k8s.io/v1/clusterroles/x/status', 'application/merge-patch+json'],
      ],
    );
  });

  it('the API client sets apiVersion and kind of list items', async () => {
    server.put('typed', 'one', {});
    const list = await connect().resource(resources.configMaps).list({ namespace: 'typed' });
    assert.deepEqual([list.items[0]?.apiVersion, list.items[0]?.kind], ['v1', 'ConfigMap']);
  });

  it('converts a Status to an ApiError, and other bodies according to the HTTP code', async () => {
    const client = connect();
    await assert.rejects(client.resource(resources.configMaps).get('missing', 'a'), (error) => {
      assert.ok(isApiError(error, 'NotFound'));
      assert.equal(error.message, 'configmaps "missing" not found');
      assert.deepEqual(error.details, { name: 'missing', kind: 'configmaps' });
      return true;
    });
    server.intercept = (_request, response) => {
      response.writeHead(502);
      response.end('upstream is away');
      return true;
    };
    await assert.rejects(client.request('GET', '/x'), (error) => {
      assert.equal(isConnectionError(error), false);
      assert.ok(error instanceof ApiError);
      assert.deepEqual([error.httpCode, error.reason, error.message], [502, 'BadGateway', 'upstream is away']);
      return true;
    });
  });

  it('retries a request only if the response has Retry-After', async () => {
    const client = connect();
    let refusals = 2;
    server.intercept = (_request, response) => {
      if (refusals-- <= 0) return false;
      json(response, 429, new ApiError('TooManyRequests', 'busy').toStatus(), { 'retry-after': '0' });
      return true;
    };
    await client.request('GET', '/version');
    assert.equal(server.seen.length, 3);
    server.seen.length = 0;
    server.intercept = (_request, response) => {
      json(response, 500, new ApiError('InternalError', 'broken').toStatus());
      return true;
    };
    await assert.rejects(client.request('GET', '/version'), { reason: 'InternalError' });
    assert.equal(server.seen.length, 1);
  });

  it('repeats a read when a kept-alive connection breaks, but never a write', async () => {
    const client = connect();
    let drops = 1;
    server.intercept = (request, response) => {
      if (drops-- <= 0) return false;
      assert.ok(request.method !== '');
      response.socket?.destroy();
      return true;
    };
    await client.request('GET', '/version');
    assert.equal(server.seen.length, 2);
    drops = 1;
    server.seen.length = 0;
    const writing = client.resource(resources.configMaps).create({ metadata: { namespace: 'a', name: 'once' } });
    await assert.rejects(writing, (error) => isConnectionError(error) && isApiError(error, 'ServiceUnavailable'));
    assert.equal(server.seen.length, 1);
  });

  it('reports a refused connection and an untrusted server as connection errors', async () => {
    const refused = connect({ server: 'https://127.0.0.1:1' });
    await assert.rejects(refused.request('GET', '/version'), (error) => isConnectionError(error));
    const untrusting = connect({ ca: createAuthority('other-ca').cert });
    await assert.rejects(untrusting.request('GET', '/version'), (error) => {
      assert.ok(isConnectionError(error));
      assert.match(error.message, /certificate/);
      return true;
    });
  });

  it('the API client uses new certificates for new requests and keeps open streams until the client is closed', async () => {
    let credentials: ClientCredentials = { ca: authority.cert, ...alice };
    const client = connect({ credentials: () => credentials });
    await client.request('GET', '/version');
    const seen: string[] = [];
    const events = client.resource(resources.configMaps).watch({ resourceVersion: String(server.revision) });
    const watching = (async () => {
      for await (const event of events) if ('metadata' in event.object) seen.push(event.object.metadata?.name ?? '');
    })();
    const ended = assert.rejects(watching, (error) => isConnectionError(error));
    await eventually('the watch is established', () => server.watchers === 1);
    for (const name of ['bob', 'carol', 'dave']) {
      credentials = { ca: authority.cert, ...authority.issue(name) };
      await client.request('GET', '/version');
      await client.resource(resources.configMaps).create({ metadata: { namespace: 'a', name } });
    }
    await eventually('events after each change', () => seen.length === 3);
    assert.deepEqual(seen, ['bob', 'carol', 'dave']);
    assert.equal(server.watchers, 1);
    const versions = server.seen.filter(({ url }) => url === '/version');
    assert.deepEqual(
      versions.map(({ commonName }) => commonName),
      ['alice', 'bob', 'carol', 'dave'],
    );
    await client.close();
    await ended;
  });

  it('reuses connections for later requests', async () => {
    const client = connect();
    const before_ = server.handshakes;
    for (let index = 0; index < 20; index++) await client.request('GET', '/version');
    // A second one may be opened while the end of a response is still read on the first.
    assert.ok(server.handshakes - before_ <= 2, `${server.handshakes - before_} connections`);
  });

  it('the API client reads its token file every minute and tolerates a missing file', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'client-token-'));
    try {
      const path = join(directory, 'token');
      const clock = new ManualClock();
      const client = connect({ tokenFile: path, clock });
      await assert.rejects(client.request('GET', '/version'), { code: 'token-file' });
      await writeFile(path, 'first\n');
      await client.request('GET', '/version');
      await writeFile(path, 'second\n');
      await client.request('GET', '/version');
      await clock.advance(60_001);
      await client.request('GET', '/version');
      await rm(path);
      await clock.advance(60_001);
      await client.request('GET', '/version');
      assert.deepEqual(
        server.seen.map(({ authorization }) => authorization),
        ['Bearer first', 'Bearer first', 'Bearer second', 'Bearer second'],
      );
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  it("rejects with the caller's abort reason", async () => {
    const client = connect();
    server.intercept = () => true;
    const controller = new AbortController();
    const pending = client.request('GET', '/version', undefined, { signal: controller.signal });
    await eventually('the request arrived', () => server.seen.length === 1);
    controller.abort(new Error('changed my mind'));
    await assert.rejects(pending, { message: 'changed my mind' });
  });

  it('decodes a watch independently of chunk boundaries and throws its ERROR event', async () => {
    const client = connect();
    const names: (string | undefined)[] = [];
    const watching = (async () => {
      const events = client.resource(resources.configMaps).watch({ resourceVersion: String(server.revision) });
      for await (const event of events) names.push(`${event.type} ${event.object.data?.['k']}`);
    })();
    const ended = assert.rejects(watching, { reason: 'Expired', message: 'too old' });
    await eventually('the watch is established', () => server.watchers === 1);
    const object: ConfigMap = {
      metadata: { name: 'u', namespace: 'n', resourceVersion: '9' },
      data: { k: 'größe 💾' },
    };
    const line = Buffer.from(`${JSON.stringify({ type: 'ADDED', object })}\n`);
    for (const byte of line) {
      server.write(Uint8Array.of(byte));
      if (byte > 127) await new Promise((resolve) => setTimeout(resolve, 1));
    }
    server.write(Buffer.concat([line, line]));
    await eventually('three events arrived', () => names.length === 3);
    assert.deepEqual(names, ['ADDED größe 💾', 'ADDED größe 💾', 'ADDED größe 💾']);
    server.write(`${JSON.stringify({ type: 'ERROR', object: new ApiError('Expired', 'too old').toStatus() })}\n`);
    await ended;
  });

  it('ends a watch when the reader stops', async () => {
    const client = connect();
    server.put('leave', 'one', {});
    const events = client.resource(resources.configMaps).watch({ namespace: 'leave', resourceVersion: '1' });
    for await (const event of events) {
      assert.equal(event.type, 'ADDED');
      break;
    }
    await eventually('the server detected the disconnect', () => server.watchers === 0);
  });

  it('the API client requires a name, and a namespace for namespaced kinds', async () => {
    const maps = connect().resource(resources.configMaps);
    await assert.rejects(maps.get('x'), /needs a namespace/);
    await assert.rejects(maps.get('', 'a'), /needs a name/);
  });
});

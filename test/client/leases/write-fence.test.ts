/** A leader that was suspended or disconnected must not write after its lease may have been taken. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Lease } from '../../../src/api/generated/coordination/v1.ts';
import { ApiError } from '../../../src/api/meta/status.ts';
import { resources } from '../../../src/api/resources.ts';
import { silentLog } from '../../../src/base/log.ts';
import { createApiClient } from '../../../src/client/index.ts';
import { LeaseFence } from '../../../src/client/leases/write-fence.ts';
import { createAuthority } from '../certificates.ts';
import { eventually, ManualClock, systemClock } from '../clocks.ts';
import { KubeServer } from '../kube-server.ts';

const isRefused = { name: 'ApiError', reason: 'ServiceUnavailable', message: /the write was not sent/ };

describe('write fence', () => {
  const fenceOf = () => {
    const clock = new ManualClock();
    return { clock, fence: new LeaseFence(clock, 'kube-system/test') };
  };

  it('the write fence is closed before the lease is acquired and after the lease is released', () => {
    const { fence } = fenceOf();
    assert.throws(() => fence.check(), isRefused);
    fence.renewed(fence.now(), 10_000);
    fence.check();
    fence.close();
    assert.throws(() => fence.check(), isRefused);
  });

  it('measures a renewal of the lease from the time at which the renewal was sent', async () => {
    const { clock, fence } = fenceOf();
    const sent = fence.now();
    await clock.advance(4_000);
    fence.renewed(sent, 10_000);
    await clock.advance(5_999);
    fence.check();
    await clock.advance(1);
    assert.throws(() => fence.check(), isRefused);
  });

  it('the write fence does not open if the response of an early renewal arrives late', async () => {
    const { clock, fence } = fenceOf();
    const early = fence.now();
    await clock.advance(8_000);
    fence.renewed(fence.now(), 10_000);
    fence.renewed(early, 10_000);
    await clock.advance(9_000);
    fence.check();
  });

  it('the write fence closes by the wall clock if the monotonic clock stops, as on a suspended host', () => {
    let wallMs = 1_000_000;
    const clock = { ...systemClock, nowMs: () => wallMs, monotonicMs: () => 5_000 };
    const fence = new LeaseFence(clock, 'kube-system/test');
    fence.renewed(fence.now(), 10_000);
    wallMs += 10_000;
    assert.throws(() => fence.check(), isRefused);
    assert.ok(fence.leftMs > 0, 'a stepped clock alone loses no lease');
  });

  it('aborts writes in progress with its reason when the lease is lost', () => {
    const { fence } = fenceOf();
    fence.renewed(fence.now(), 10_000);
    const { lost } = fence;
    fence.cut();
    assert.ok(lost?.reason instanceof ApiError);
    assert.equal(fence.lost, undefined);
  });
});

describe('fenced client', () => {
  const authority = createAuthority('fence');
  const server = new KubeServer(authority.issue('server', { server: true }), authority.cert);
  before(() => server.start());
  after(() => server.stop());

  const clientOf = (url: string) =>
    createApiClient({ server: url, ca: authority.cert, userAgent: 'test', log: silentLog, clock: systemClock });
  const configMap = (name: string) => ({ metadata: { name, namespace: 'n' } });

  it('a fenced client can write while the lease is held, and then only read', async () => {
    const client = clientOf(server.url);
    const clock = new ManualClock();
    const fence = new LeaseFence(clock, 'kube-system/test');
    const maps = client.fenced(fence).resource(resources.configMaps);
    await assert.rejects(maps.create(configMap('early')), isRefused);
    fence.renewed(fence.now(), 10_000);
    await maps.create(configMap('held'));
    await clock.advance(10_000);
    for (const write of [
      () => maps.create(configMap('late')),
      () => maps.update(configMap('held')),
      () => maps.patch('held', 'n', 'merge', {}),
      () => maps.delete('held', 'n'),
      () => client.fenced(fence).request('POST', '/api/v1/namespaces/n/configmaps', configMap('late')),
    ])
      await assert.rejects(write(), isRefused);
    await maps.get('held', 'n');
    await client.resource(resources.configMaps).create(configMap('unfenced'));
    assert.deepEqual(server.keys(), ['n/held', 'n/unfenced']);
    await client.close();
  });

  it('drops a write whose connection opens only after the lease has expired', async () => {
    // Accepts connections, but delays the handshake until the connection is piped to the server.
    const held: (() => void)[] = [];
    const slow = createTcpServer((socket) => {
      held.push(() => {
        const to = new URL(server.url);
        import('node:net').then(({ connect }) => {
          const upstream = connect(Number(to.port), to.hostname);
          socket.pipe(upstream).pipe(socket);
          for (const each of [socket, upstream]) each.on('error', () => {});
        });
      });
    });
    slow.listen(0, '127.0.0.1');
    await once(slow, 'listening');
    const address = slow.address();
    const client = clientOf(`https://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`);
    const clock = new ManualClock();
    const fence = new LeaseFence(clock, 'kube-system/test');
    fence.renewed(fence.now(), 10_000);
    const writing = client.fenced(fence).resource(resources.configMaps).create(configMap('queued'));
    const refused = assert.rejects(writing, isRefused);
    await eventually('the connection waits', () => held.length > 0);
    await clock.advance(10_000);
    for (const release of held) release();
    await refused;
    assert.equal(server.keys().includes('n/queued'), false);
    await client.close();
    slow.close();
  });

  it('aborts a write in progress when the lease is lost', async () => {
    const client = clientOf(server.url);
    const fence = new LeaseFence(new ManualClock(), 'kube-system/test');
    fence.renewed(fence.now(), 10_000);
    const seen = server.seen.length;
    server.intercept = () => true;
    const writing = client.fenced(fence).resource(resources.configMaps).create(configMap('hanging'));
    await eventually('the server has the object', () => server.seen.length > seen);
    fence.cut();
    await assert.rejects(writing, { message: /is lost; the write was aborted/ });
    server.intercept = () => false;
    await client.close();
  });
});

describe('leader that is suspended by SIGSTOP', () => {
  it('a leader that SIGSTOP suspended writes nothing after SIGCONT if another leader holds the lease', {
    timeout: 60_000,
  }, async () => {
    const authority = createAuthority('stopped');
    const writes: { readonly by: string; readonly atMs: number }[] = [];
    const server = new KubeServer(authority.issue('server', { server: true }), authority.cert);
    let lease: Lease | undefined;
    let version = 0;
    const json = (response: Parameters<KubeServer['intercept']>[1], code: number, body: unknown): true => {
      response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body));
      return true;
    };
    const failure = (response: Parameters<KubeServer['intercept']>[1], code: number, reason: string): true =>
      json(response, code, { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, code, message: reason });
    server.intercept = (request, response) => {
      if (request.url.includes('/configmaps') && request.method === 'POST') {
        writes.push({ by: request.url.includes('by-a') ? 'a' : 'b', atMs: performance.now() });
        return json(response, 201, request.body);
      }
      if (!request.url.includes('/leases')) return false;
      // Watches fail immediately, so candidates poll.
      if (request.url.includes('watch=')) return failure(response, 403, 'Forbidden');
      const body = request.body as Lease;
      if (request.method === 'GET')
        return lease === undefined ? failure(response, 404, 'NotFound') : json(response, 200, lease);
      if (request.method === 'POST' && lease !== undefined) return failure(response, 409, 'AlreadyExists');
      if (request.method === 'PUT' && lease?.metadata?.resourceVersion !== body.metadata?.resourceVersion)
        return failure(response, 409, 'Conflict');
      lease = { ...body, metadata: { ...body.metadata, resourceVersion: `${++version}` } };
      return json(response, 200, lease);
    };
    await server.start();
    const children: ChildProcess[] = [];
    const candidate = (name: string): ChildProcess => {
      const child = spawn(process.execPath, [join(import.meta.dirname, '../leader.child.ts'), name, server.url], {
        stdio: ['pipe', 'inherit', 'inherit'],
      });
      child.stdin?.end(authority.cert);
      children.push(child);
      return child;
    };
    try {
      const a = candidate('a');
      await eventually('a writes', () => writes.some(({ by }) => by === 'a'), 20_000);
      candidate('b');
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      assert.ok(a.pid);
      a.kill('SIGSTOP');
      await eventually('the kernel has stopped process a', () =>
        /^State:\s+T/m.test(readFileSync(`/proc/${a.pid}/status`, 'utf8')),
      );
      await eventually('b leads and writes', () => writes.some(({ by }) => by === 'b'), 20_000);
      const firstOfB = writes.find(({ by }) => by === 'b')?.atMs ?? 0;
      a.kill('SIGCONT');
      await new Promise((resolve) => setTimeout(resolve, 2_500));
      assert.deepEqual(
        writes.filter(({ by, atMs }) => by === 'a' && atMs > firstOfB),
        [],
        'writes of the deposed leader',
      );
      assert.equal(lease?.spec?.holderIdentity, 'b');
      assert.ok(writes.filter(({ by, atMs }) => by === 'b' && atMs > firstOfB).length > 10, 'b goes on');
    } finally {
      for (const child of children) child.kill('SIGKILL');
      await server.stop();
    }
  });
});

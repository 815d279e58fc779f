import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { ConfigMap } from '../../../src/api/generated/core/v1.ts';
import { objectKey } from '../../../src/api/meta/object.ts';
import { ApiError } from '../../../src/api/meta/status.ts';
import { resources } from '../../../src/api/resources.ts';
import { createLog, type Log, silentLog } from '../../../src/base/log.ts';
import {
  type ApiClient,
  createApiClient,
  createInformerFactory,
  type Informer,
  type InformerFactory,
  type InformerOptions,
} from '../../../src/client/index.ts';
import { createAuthority } from '../certificates.ts';
import { eventually, seededRandom, systemClock } from '../clocks.ts';
import { json, KubeServer } from '../kube-server.ts';

describe('informer', () => {
  const authority = createAuthority('test-ca');
  const identity = authority.issue('alice');
  const certificate = authority.issue('server', { server: true });
  let server: KubeServer;
  let client: ApiClient;
  let factory: InformerFactory;
  let reported: string[];

  const note = (informer: Informer<ConfigMap>): void => {
    informer.onChange({
      added: (object) => reported.push(`+${objectKey(object)}=${object.data?.['v']}`),
      updated: (object, old) => reported.push(`~${objectKey(object)}=${old.data?.['v']}→${object.data?.['v']}`),
      deleted: (object) => reported.push(`-${objectKey(object)}=${object.data?.['v']}`),
    });
  };

  const open = async (options: InformerOptions = {}): Promise<Informer<ConfigMap>> => {
    const informer = factory.informer(resources.configMaps, options);
    note(informer);
    await factory.startAndSync();
    return informer;
  };

  const build = (log: Log = silentLog): void => {
    factory = createInformerFactory({ client, log, clock: systemClock, random: seededRandom(7) });
  };

  beforeEach(async () => {
    reported = [];
    server = new KubeServer(certificate, authority.cert);
    await server.start();
    client = createApiClient({
      server: server.url,
      ca: authority.cert,
      ...identity,
      userAgent: 'test/1',
      log: silentLog,
      clock: systemClock,
    });
    build();
  });
  afterEach(async () => {
    await factory.stop();
    await client.close();
    await server.stop();
  });
  const lists = (): number => server.seen.filter(({ url }) => /configmaps(\?(?!.*watch)|$)/.test(url)).length;
  const watches = (): string[] => server.seen.filter(({ url }) => url.includes('watch=true')).map(({ url }) => url);

  it('an informer stores the reduced copy of listed and watched objects', async () => {
    server.put('a', 'x', { v: '1', big: 'text' });
    const informer = await open({
      reduce: (object) => ({ metadata: object.metadata ?? {}, data: { v: (object as ConfigMap).data?.['v'] ?? '' } }),
    });
    await eventually('the watch is established', () => server.watchers === 1);
    server.put('a', 'x', { v: '2', big: 'text' });
    await eventually('all notifications', () => reported.length === 2);
    assert.deepEqual(reported, ['+a/x=1', '~a/x=1→2']);
    assert.deepEqual(informer.get('a/x')?.data, { v: '2' });
    assert.doesNotMatch(watches().join(' '), /reduce/);
    assert.notEqual(factory.informer(resources.configMaps), informer);
  });

  it('lists objects, then follows every change', async () => {
    server.put('a', 'x', { v: '1' });
    const informer = await open();
    assert.deepEqual(reported, ['+a/x=1']);
    await eventually('the watch is established', () => server.watchers === 1);
    server.put('a', 'x', { v: '2' });
    server.put('b', 'y', { v: '1' });
    server.remove('a', 'x');
    await eventually('all notifications', () => reported.length === 4);
    assert.deepEqual(reported, ['+a/x=1', '~a/x=1→2', '+b/y=1', '-a/x=2']);
    assert.equal(informer.get('a/x'), undefined);
    assert.equal(informer.get('b/y')?.kind, 'ConfigMap');
    assert.equal(lists(), 1);
  });

  it('treats an optional kind that is not served as empty', { timeout: 20_000 }, async () => {
    const rules = factory.informer(resources.deviceTaintRules, { optional: true });
    await factory.startAndSync();
    assert.deepEqual([rules.hasListed, rules.list()], [true, []]);
    const requested = server.seen.filter(({ url }) => url.includes('devicetaintrules')).length;
    await new Promise((resolve) => setTimeout(resolve, 500));
    assert.equal(server.seen.filter(({ url }) => url.includes('devicetaintrules')).length, requested);
  });

  it('an informer merges pages into one list', async () => {
    for (let index = 0; index < 12; index++) server.put('a', `n${index}`, { v: '1' });
    server.maxPage = 5;
    const informer = await open();
    assert.equal(informer.list().length, 12);
    assert.equal(lists(), 3);
  });

  it('repeats the list without pages when a continue token has expired', async () => {
    for (let index = 0; index < 12; index++) server.put('a', `n${index}`, { v: '1' });
    server.maxPage = 5;
    server.intercept = (request) => {
      if (!request.url.includes('continue')) return false;
      server.intercept = () => false;
      server.put('a', 'late', { v: '1' });
      server.compact();
      return false;
    };
    const informer = await open();
    assert.equal(informer.list().length, 13);
  });

  it('resumes after a lost connection without a list and misses no change', async () => {
    const informer = await open();
    await eventually('the watch is established', () => server.watchers === 1);
    server.put('a', 'x', { v: '1' });
    await eventually('the change arrived', () => reported.length === 1);
    server.dropConnections();
    server.put('a', 'y', { v: '1' });
    await eventually('the change during the disconnect arrived', () => reported.length === 2);
    assert.deepEqual(reported, ['+a/x=1', '+a/y=1']);
    assert.equal(lists(), 1);
    assert.equal(informer.list().length, 2);
  });

  it('reconnects within a second after a restart', async () => {
    await open();
    await eventually('the watch is established', () => server.watchers === 1);
    await server.stop();
    await new Promise((resolve) => setTimeout(resolve, 1500));
    server.put('a', 'x', { v: '1' });
    await server.start();
    const startedMs = performance.now();
    await eventually('the change arrived', () => reported.length === 1);
    const tookMs = performance.now() - startedMs;
    assert.ok(tookMs < 4000, `took ${tookMs} ms`);
    assert.equal(lists(), 1);
  });

  it('sends one probe for all informers while the server is unreachable', async () => {
    for (const namespace of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) {
      factory.informer(resources.configMaps, { namespace });
    }
    await factory.startAndSync();
    await eventually('all watches are established', () => server.watchers === 8);
    server.intercept = (_request, response) => {
      response.socket?.destroy();
      return true;
    };
    server.seen.length = 0;
    server.dropConnections();
    await new Promise((resolve) => setTimeout(resolve, 1000));
    // Each watch tries once; then there is one request per probe, repeated once because it is a read.
    assert.ok(server.seen.length <= 8 * 2 + 10, `${server.seen.length} requests`);
    server.intercept = () => false;
    await eventually('all watches are re-established', () => server.watchers === 8, 1000);
  });

  it('an informer waits for a server that has not started yet', async () => {
    const informer = factory.informer(resources.configMaps);
    note(informer);
    await server.stop();
    const synced = factory.startAndSync();
    server.put('a', 'x', { v: '1' });
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal(informer.hasSynced, false);
    await server.start();
    await synced;
    assert.deepEqual(reported, ['+a/x=1']);
  });

  it('lists again after 410 and reports the deletions that the watch missed', async () => {
    server.put('a', 'gone', { v: '1' });
    server.put('a', 'stays', { v: '1' });
    server.put('a', 'changes', { v: '1' });
    server.put('a', 'again', { v: '1' });
    await open();
    await eventually('the watch is established', () => server.watchers === 1);
    reported.length = 0;
    await server.stop();
    server.remove('a', 'gone');
    server.put('a', 'changes', { v: '2' });
    server.remove('a', 'again');
    server.put('a', 'again', { v: '2' });
    server.put('a', 'new', { v: '1' });
    server.compact();
    await server.start();
    await eventually('all notifications', () => reported.length === 5);
    assert.deepEqual(reported.sort(), ['+a/again=2', '+a/new=1', '-a/again=1', '-a/gone=1', '~a/changes=1→2']);
    assert.equal(lists(), 2);
  });

  it('an informer lists in pages also after 410', async () => {
    for (let index = 0; index < 12; index++) server.put('a', `n${index}`, { v: '1' });
    const informer = await open();
    await eventually('the watch is established', () => server.watchers === 1);
    await server.stop();
    server.put('a', 'late', { v: '1' });
    server.compact();
    server.maxPage = 5;
    const from = server.seen.length;
    await server.start();
    await eventually('the watch is re-established', () => server.watchers === 1);
    assert.equal(informer.list().length, 13);
    const again = server.seen.slice(from).filter(({ url }) => /configmaps\?(?!.*watch)/.test(url));
    assert.equal(again.length, 3);
    for (const { url } of again) assert.match(url, /\blimit=500\b/);
    // The last seen version is no longer in the history, so the newest state is requested.
    assert.doesNotMatch(again[0]?.url ?? '', /resourceVersion/);
  });

  it("lists again when the server's revision is lower than before", async () => {
    server.put('a', 'x', { v: '1' });
    await open();
    await eventually('the watch is established', () => server.watchers === 1);
    reported.length = 0;
    await server.stop();
    server.rewind(50);
    server.put('a', 'y', { v: '1' });
    await server.start();
    await eventually('the new object is notified', () => reported.includes('+a/y=1'));
    server.put('a', 'z', { v: '1' });
    await eventually('the watch continues', () => reported.includes('+a/z=1'));
  });

  it('resumes from a bookmark that is newer than the last event', async () => {
    server.put('a', 'x', { v: '1' });
    await open({ namespace: 'a' });
    await eventually('the watch is established', () => server.watchers === 1);
    for (let index = 0; index < 5; index++) server.put('other', `n${index}`, { v: '1' });
    server.bookmark();
    await new Promise((resolve) => setTimeout(resolve, 50));
    const bookmarked = server.revision;
    server.compact();
    server.endWatches();
    await eventually('the watch is re-established', () => watches().length === 2);
    assert.match(watches()[1] ?? '', new RegExp(`resourceVersion=${bookmarked}&`));
    await eventually('the watch is established', () => server.watchers === 1);
    assert.equal(lists(), 1);
  });

  it('backs off from a server that ends every watch immediately', async () => {
    await open();
    await eventually('the watch is established', () => server.watchers === 1);
    server.intercept = (request, response) => {
      if (!request.url.includes('watch=true')) return false;
      response.writeHead(200);
      response.end();
      return true;
    };
    server.endWatches();
    const before_ = watches().length;
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const tries = watches().length - before_;
    assert.ok(tries >= 2 && tries <= 6, `${tries} watches in a second`);
  });

  it('retries a refused list, without a warning while the cluster may be starting', async () => {
    const lines: string[] = [];
    build(createLog({ component: 't', level: 3, nowMs: () => 0, sink: { write: (line) => lines.push(line) } }));
    let refusals = 2;
    server.intercept = (_request, response) => {
      if (refusals-- <= 0) return false;
      json(response, 403, new ApiError('Forbidden', 'configmaps is forbidden').toStatus());
      return true;
    };
    await open();
    assert.equal(lines.filter((line) => /I t list interrupted kind=ConfigMap .*forbidden/.test(line)).length, 2);
  });

  it('an informer finds objects by an index, also after changes of the indexed field', async () => {
    server.put('a', 'x', { owner: 'one' });
    const informer = factory.informer(resources.configMaps);
    informer.addIndex('owner', (object) => (object.data?.['owner'] ?? '').split(',').filter(Boolean));
    await factory.startAndSync();
    await eventually('the watch is established', () => server.watchers === 1);
    const names = (value: string): (string | undefined)[] =>
      informer.byIndex('owner', value).map((object) => object.metadata?.name);
    assert.deepEqual(names('one'), ['x']);
    server.put('a', 'x', { owner: 'two,three' });
    server.put('b', 'y', { owner: 'two' });
    await eventually('both events arrived', () => informer.list().length === 2 && names('one').length === 0);
    assert.deepEqual([names('one'), names('two'), names('three')], [[], ['x', 'y'], ['x']]);
    assert.deepEqual(informer.list('b').map(objectKey), ['b/y']);
    informer.addIndex('late', () => ['all']);
    assert.equal(informer.byIndex('late', 'all').length, 2);
    server.remove('a', 'x');
    await eventually('the deletion arrived', () => names('three').length === 0);
    assert.throws(() => informer.byIndex('none', 'x'), /does not exist/);
  });

  it('an informer reports existing objects to handlers that are added later, and tolerates errors of handlers', async () => {
    server.put('a', 'x', { v: '1' });
    const informer = await open();
    const late: string[] = [];
    informer.onChange({
      added: () => {
        throw new Error('a bug');
      },
    });
    const leave = informer.onChange({ added: (object) => late.push(objectKey(object)) });
    assert.deepEqual(late, ['a/x']);
    await eventually('the watch is established', () => server.watchers === 1);
    server.put('a', 'y', { v: '1' });
    await eventually('the change arrived', () => late.length === 2);
    leave();
    server.put('a', 'z', { v: '1' });
    await eventually('the other members received the message', () => reported.length === 3);
    assert.deepEqual(late, ['a/x', 'a/y']);
  });

  it('informers with the same options are shared between callers', () => {
    const one = factory.informer(resources.configMaps, { namespace: 'a' });
    assert.equal(factory.informer(resources.configMaps, { namespace: 'a' }), one);
    assert.notEqual(factory.informer(resources.configMaps), one);
    assert.notEqual(factory.informer<object>(resources.secrets, { namespace: 'a' }), one);
  });

  it('an informer stops immediately while a response is outstanding', async () => {
    server.intercept = () => true;
    factory.informer(resources.configMaps).start();
    await eventually('the list was requested', () => server.seen.length === 1);
    const startedMs = performance.now();
    await factory.stop();
    assert.ok(performance.now() - startedMs < 2000);
  });

  it('stops immediately while the server is unreachable and stops syncing on abort', async () => {
    await open();
    await server.stop();
    await new Promise((resolve) => setTimeout(resolve, 50));
    const startedMs = performance.now();
    await factory.stop();
    assert.ok(performance.now() - startedMs < 2000);
    build();
    factory.informer(resources.configMaps);
    await assert.rejects(factory.startAndSync(AbortSignal.timeout(50)), { name: 'TimeoutError' });
  });
});

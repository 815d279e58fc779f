/** The JSON gateway against that of Debian's etcd: equal requests must return equal status and body, except for IDs. */
import assert from 'node:assert/strict';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type Peer, startPeerEtcd } from '../../conformance/etcd/peer.ts';
import { DEBIAN_ETCD, isInstalled, type Running, remove, startHere, temporaryDirectory } from '../harness.ts';

const b64 = (text: string): string => Buffer.from(text).toString('base64');

const REQUESTS: ReadonlyArray<readonly [path: string, body: unknown]> = [
  ['kv/put', { key: b64('a'), value: b64('1') }],
  ['kv/put', { key: b64('a'), value: b64('2'), prev_kv: true }],
  ['kv/put', { key: b64('b'), value: b64('3'), prevKv: true, lease: null }],
  ['kv/range', { key: b64('a') }],
  ['kv/range', { key: b64('a'), range_end: b64('\0'), sort_order: 'DESCEND', sortTarget: 'MOD', limit: '1' }],
  ['kv/range', { key: b64('a'), range_end: b64('z'), count_only: true }],
  ['kv/range', { key: b64('none') }],
  ['kv/range', {}],
  ['kv/range', { key: b64('a'), revision: '99' }],
  ['kv/deleterange', { key: b64('b'), prev_kv: true }],
  [
    'kv/txn',
    {
      compare: [{ target: 'VALUE', result: 'EQUAL', key: b64('a'), value: b64('2') }],
      success: [{ requestPut: { key: b64('a'), value: b64('4') } }, { request_range: { key: b64('a') } }],
      failure: [{ request_delete_range: { key: b64('a') } }],
    },
  ],
  ['kv/txn', { compare: [{ target: 'VERSION', key: b64('new'), version: '0' }], success: [] }],
  ['lease/grant', { TTL: '60', ID: '1234' }],
  ['lease/grant', { TTL: 60, ID: 1234 }],
  ['kv/put', { key: b64('leased'), lease: '1234' }],
  ['kv/range', { key: b64('leased') }],
  ['lease/leases', {}],
  ['kv/lease/timetolive', { ID: 77, keys: true }],
  ['lease/keepalive', { ID: 1234 }],
  ['lease/keepalive', { ID: 77 }],
  ['lease/revoke', { ID: '1234' }],
  ['lease/revoke', { ID: '1234' }],
  ['kv/compaction', { revision: '3' }],
  ['kv/compaction', { revision: '3' }],
  ['auth/user/add', { name: 'eve', password: 'secret' }],
  ['auth/user/get', { name: 'eve' }],
  ['auth/role/add', { name: 'reader' }],
  ['auth/role/grant', { name: 'reader', perm: { permType: 'READ', key: b64('a'), range_end: b64('b') } }],
  ['auth/role/get', { role: 'reader' }],
  ['auth/user/grant', { user: 'eve', role: 'reader' }],
  ['auth/user/list', {}],
  ['auth/authenticate', { name: 'eve', password: 'secret' }],
  ['election/leader', { name: b64('office') }],
  ['kv/nonsense', {}],
];

/** 64-bit numbers as a Go client writes them, with more digits than a JavaScript number holds. */
const AS_WRITTEN: ReadonlyArray<readonly [path: string, body: string]> = [
  ['lease/grant', '{"ID":2656613593981200015,"TTL":60}'],
  ['kv/put', `{"key":"${b64('large')}","lease":2656613593981200015}`],
  ['lease/timetolive', '{"ID":2656613593981200015,"keys":true}'],
  ['lease/revoke', '{"ID":2656613593981200016}'],
  ['lease/revoke', '{"ID":2656613593981200015}'],
];

describe('JSON gateway', () => {
  let directory = '';
  let running: Running;
  let peer: Peer | undefined;
  before(async () => {
    directory = await temporaryDirectory();
    if (await isInstalled(DEBIAN_ETCD)) peer = await startPeerEtcd(directory);
    const data = await mkdtemp(join(directory, 'data-'));
    running = await startHere(data, undefined);
  });
  after(async () => {
    await peer?.stop();
    await running.server.stop();
    await remove(directory);
  });

  const post = async (endpoint: string, path: string, body: string, method = 'POST') => {
    const init = method === 'POST' ? { method, body } : { method };
    const answer = await fetch(`${endpoint}/v3/${path}`, init);
    return { status: answer.status, type: answer.headers.get('content-type'), body: await answer.text() };
  };
  const normalised = (answer: Awaited<ReturnType<typeof post>>) => ({
    ...answer,
    body: answer.body.replaceAll(/"(cluster_id|member_id|raft_term)":"\d+"/g, '"$1":"N"'),
  });

  it("the JSON gateway returns the same responses as the gateway of Debian's etcd", async (t) => {
    const { endpoint } = peer ?? {};
    if (endpoint === undefined) {
      t.skip('etcd is not installed');
      return;
    }
    const requests = REQUESTS.map(([path, body]) => [path, JSON.stringify(body)] as const);
    for (const [path, text] of [...AS_WRITTEN, ...requests]) {
      const ours = await post(running.endpoint, path, text);
      const theirs = await post(endpoint, path, text);
      assert.deepEqual(normalised(ours), normalised(theirs), `${path} ${text}`);
    }
    assert.deepEqual(await post(running.endpoint, 'kv/range', '', 'GET'), await post(endpoint, 'kv/range', '', 'GET'));
  });

  it('the JSON gateway serves auth status and hashes with the fields of etcd 3.5 and 3.6', async () => {
    const fresh = await temporaryDirectory();
    const here = await startHere(fresh, undefined);
    try {
      const responseOf = async (path: string) => JSON.parse((await post(here.endpoint, path, '{}')).body);
      assert.equal((await responseOf('auth/status')).authRevision, '1');
      await post(here.endpoint, 'kv/put', JSON.stringify({ key: b64('a') }));
      const { hash, compact_revision: compacted, hash_revision: at } = await responseOf('maintenance/hashkv');
      assert.deepEqual([typeof hash, compacted, at], ['number', '-1', '2']);
      assert.deepEqual(Object.keys(await responseOf('maintenance/hash')), ['header', 'hash']);
    } finally {
      await here.server.stop();
      await remove(fresh);
    }
  });

  // About once in a hundred runs Debian's etcd 3.4 never responds to one of these requests.
  it("the JSON gateway adds, changes, promotes and removes members like Debian's etcd", {
    timeout: 30_000,
  }, async (t) => {
    const { endpoint } = peer ?? {};
    if (endpoint === undefined) {
      t.skip('etcd is not installed');
      return;
    }
    /** Results of all steps, which use the member ID that the store assigned in the first step. */
    const all = async (at: string): Promise<unknown[]> => {
      let id = '1';
      const output: unknown[] = [];
      const own = (JSON.parse((await post(at, 'cluster/member/list', '{}')).body) as { members: Array<{ ID: string }> })
        .members[0]?.ID;
      const step = async (path: string, body: (id: string) => unknown): Promise<void> => {
        const answer = normalised(await post(at, `cluster/member/${path}`, JSON.stringify(body(id))));
        const found = JSON.parse(answer.body);
        id = found.member?.ID ?? id;
        // The existing member's name and addresses differ. In etcd 3.4 an update clears the learner flag.
        const members = found.members?.map((each: { ID: string }) =>
          each.ID === own ? 'own' : { ...each, ID: 'ID', ...(path === 'update' ? { isLearner: undefined } : {}) },
        );
        const member = found.member === undefined ? undefined : { ...found.member, ID: 'ID' };
        output.push([path, { ...answer, body: { ...found, members: members?.sort(), member } }]);
      };
      await step('promote', () => ({ ID: '77' }));
      await step('remove', () => ({ ID: 77 }));
      await step('update', () => ({ ID: '77', peerURLs: ['http://127.0.0.1:9'] }));
      await step('add', () => ({ peerURLs: ['no url'] }));
      await step('add', () => ({ peerURLs: ['http://127.0.0.1:7'], isLearner: true }));
      await step('promote', (ID) => ({ ID }));
      await step('list', () => ({}));
      await step('update', (ID) => ({ ID, peerURLs: ['http://127.0.0.1:9'] }));
      await step('remove', (ID) => ({ ID }));
      await step('list', () => ({}));
      return output;
    };
    assert.deepEqual(await all(running.endpoint), await all(endpoint));
  });

  it('the JSON gateway rejects requests that cannot be parsed, and names the field', async () => {
    const refused = async (path: string, body: string): Promise<string> => {
      const answer = await post(running.endpoint, path, body);
      assert.equal(answer.status, 400, answer.body);
      const { error, message, code } = JSON.parse(answer.body);
      assert.deepEqual([message, code], [error, 3]);
      return message;
    };
    assert.match(await refused('kv/range', '{bad'), /JSON/);
    assert.equal(await refused('kv/range', '[]'), 'RangeRequest must be an object');
    assert.equal(await refused('kv/range', '{"kye":""}'), 'unknown field "kye" in RangeRequest');
    assert.equal(
      await refused('kv/range', '{"__proto__":{"key":"YQ=="}}'),
      'unknown field "__proto__" in RangeRequest',
    );
    assert.equal(await refused('kv/range', '{"key":"%"}'), 'RangeRequest.key is not base64');
    assert.equal(await refused('kv/range', '{"limit":1.5}'), 'RangeRequest.limit must be a whole number');
    assert.equal(await refused('kv/range', '{"limit":"99999999999999999999"}'), 'RangeRequest.limit is out of range');
    assert.equal(await refused('kv/range', '{"limit":99999999999999999999}'), 'RangeRequest.limit is out of range');
    assert.match(await refused('kv/range', `{"limit":${'9'.repeat(1 << 20)}}`), /must be a whole number/);
    assert.equal(await refused('kv/range', '{"key":12345678901234567890}'), 'RangeRequest.key must be a string');
    assert.equal(await refused('kv/range', '{"sort_order":"UP"}'), 'RangeRequest.sort_order: unknown value "UP"');
    const deep = `${'{"success":[{"request_txn":'.repeat(200)}{}${'}]}'.repeat(200)}`;
    assert.match(await refused('kv/txn', deep), /nested too deeply/);
    const large = await post(running.endpoint, 'kv/put', JSON.stringify({ value: 'A'.repeat(4 << 20) }));
    assert.equal(large.status, 429);
  });

  it('does not serve the JSON gateway if it is disabled', async () => {
    const data = await temporaryDirectory();
    const without = await startHere(data, undefined, { jsonGateway: false });
    assert.notEqual((await post(without.endpoint, 'kv/range', '{}')).status, 400);
    assert.equal((await fetch(`${without.endpoint}/v3/kv/range`)).status, 404);
    await without.server.stop();
    await remove(data);
  });

  it('the JSON gateway limits concurrent calls and queues the calls beyond the limit', async () => {
    const data = await temporaryDirectory();
    const narrow = await startHere(data, undefined, { gatewayStreams: 2 });
    const watching = (): Promise<() => void> => {
      const abort = new AbortController();
      const body = JSON.stringify({ create_request: { key: b64('w') } });
      return fetch(`${narrow.endpoint}/v3/watch`, { method: 'POST', body, signal: abort.signal }).then(
        async (answer) => {
          const first = await (answer.body as ReadableStream<Uint8Array>).getReader().read();
          assert.match(Buffer.from(first.value ?? []).toString(), /"created":true/);
          return () => abort.abort();
        },
      );
    };
    const leaves = [await watching(), await watching()];
    // A client that disconnects while it waits leaves no pending call.
    const put = (key: string, signal?: AbortSignal) =>
      fetch(`${narrow.endpoint}/v3/kv/put`, {
        method: 'POST',
        body: JSON.stringify({ key: b64(key) }),
        ...(signal === undefined ? {} : { signal }),
      });
    await assert.rejects(put('given-up', AbortSignal.timeout(300)), { name: 'TimeoutError' });
    const waiting = put('patient');
    const early = await Promise.race([waiting, new Promise((resolve) => setTimeout(resolve, 300))]);
    assert.equal(early, undefined);
    leaves[0]?.();
    assert.equal((await waiting).status, 200);
    const kept = await post(narrow.endpoint, 'kv/range', JSON.stringify({ key: b64('\0'), range_end: b64('\0') }));
    assert.deepEqual(
      JSON.parse(kept.body).kvs.map(({ key }: { key: string }) => key),
      [b64('patient')],
    );
    leaves[1]?.();
    await narrow.server.stop();
    await remove(data);
  });

  it('the JSON gateway streams watch events line by line until the client disconnects', async () => {
    const abort = new AbortController();
    const answer = await fetch(`${running.endpoint}/v3/watch`, {
      method: 'POST',
      body: JSON.stringify({ create_request: { key: b64('w'), range_end: b64('x'), filters: ['NODELETE'] } }),
      signal: abort.signal,
    });
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    let text = '';
    const line = async (): Promise<{ result: { created?: boolean; events?: unknown[] } }> => {
      while (!text.includes('\n')) text += Buffer.from((await reader.read()).value ?? []).toString();
      const end = text.indexOf('\n');
      const json = JSON.parse(text.slice(0, end));
      text = text.slice(end + 1);
      return json;
    };
    assert.equal((await line()).result.created, true);
    await post(running.endpoint, 'kv/put', JSON.stringify({ key: b64('w1'), value: b64('v') }));
    const { result } = await line();
    assert.equal((result.events as Array<{ kv: { key: string } }>)[0]?.kv.key, b64('w1'));
    const count = async (): Promise<string> => (await fetch(`${running.endpoint}/metrics`)).text();
    assert.match(await count(), /^etcd_debugging_mvcc_watcher_total 1$/m);
    abort.abort();
    for (let i = 0; i < 200 && !/^etcd_debugging_mvcc_watcher_total 0$/m.test(await count()); i += 1) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assert.match(await count(), /^etcd_debugging_mvcc_watcher_total 0$/m);
  });
});

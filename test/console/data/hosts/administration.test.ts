import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import {
  downloadSnapshot,
  firstStore,
  memberViews,
  readSnapshots,
  type SendFile,
  saveSnapshot,
  uploadArchive,
} from '../../../../src/console/data/hosts/administration.ts';
import { eventually, ManualClock } from '../../../client/clocks.ts';
import { FakeApi, json } from '../fake-api.ts';

const { signal } = new AbortController();
const lines = (...values: readonly object[]): Response =>
  new Response(values.map((each) => `${JSON.stringify(each)}\n`).join(''));
const member = { name: 'm1', id: '0123', role: 'leader', state: 'ok', lag: 0, dbBytes: 2048, errors: [] };

describe('administration of hosts', () => {
  let server: FakeApi;
  beforeEach(() => {
    server = new FakeApi();
  });

  it('shows gossip members with flush times, and marks late and failed members', () => {
    const views = memberViews({
      store: {
        state: 'known',
        value: {
          quorum: true,
          members: [
            member,
            { ...member, id: '4', role: 'voter', lag: 5000 },
            { ...member, id: '5', name: '', state: 'not-started', errors: ['no answer'] },
          ],
        },
      },
      ring: {
        state: 'known',
        value: [
          { name: 'm1', roles: [], version: '', state: 'alive', forMs: 1, memberId: '0000000000000123', fsyncMs: 1.25 },
        ],
      },
    });
    assert.deepEqual(
      views.map(({ name, level, state, lag, fsync }) => [name, level, state, lag, fsync]),
      [
        ['m1', 'good', 'ok', '0', '1.3 ms'],
        ['m1', 'warn', 'ok', '5000', ''],
        ['(not started)', 'bad', 'not-started: no answer', '0', ''],
      ],
    );
  });

  it('reads the store state from the next master while a master does not answer, and cancels the pending request', async () => {
    const report = { store: { state: 'known', value: { quorum: true, members: [member] } }, ring: { state: 'absent' } };
    let isEnded = false;
    server.answer = (url, request) => {
      if (!url.pathname.includes('/nodes/off/')) return json(report);
      return new Promise((_, reject) => {
        request.signal?.addEventListener('abort', () => {
          isEnded = true;
          reject(request.signal?.reason);
        });
      });
    };
    const clock = new ManualClock();
    const read = firstStore(server.api, clock, ['off', 'm1'], signal);
    await eventually('a request to the first master', () => server.requests.length === 1);
    clock.advance(2_000);
    const found = await read;
    assert.equal('value' in found && found.value.store.value?.members[0]?.name, 'm1');
    assert.equal(isEnded, true);
  });

  it('reports the last error if no master reports the state of the store', async () => {
    server.answer = () => json({ kind: 'Status', message: 'gone' }, 503);
    assert.deepEqual(await firstStore(server.api, new ManualClock(), ['m1', 'm2'], signal), { error: 'gone' });
    const unknown = { store: { state: 'failed', reason: 'no store' }, ring: { state: 'absent' } };
    server.answer = (url) => (url.pathname.includes('/m1/') ? json(unknown) : json({ message: 'gone' }, 503));
    const found = await firstStore(server.api, new ManualClock(), ['m1', 'm2'], signal);
    assert.equal('value' in found && found.value.store.reason, 'no store');
  });

  it('reads reports below the proxy of a node, and rejects reports without a required field', async () => {
    server.answer = () => json({ directory: '/d', keep: 3, isSaving: false, snapshots: [] });
    await readSnapshots(server.api, 'm/1', signal);
    assert.equal(server.requests[0]?.url.pathname, '/api/v1/nodes/m%2F1/proxy/hyperedge/snapshots');
    server.answer = () => json({ directory: '/d', keep: 3, isSaving: false, snapshots: [{ name: 1 }] });
    await assert.rejects(readSnapshots(server.api, 'm1', signal), /snapshots\[0\]\.name: must be a string/);
  });

  it('reports the progress of a snapshot, and treats a stream without a result as a failure', async () => {
    const seen: number[] = [];
    server.answer = (_url, { method }) => {
      assert.equal(method, 'POST');
      return lines({ stage: 'saving', bytes: 5 }, { result: { file: '/d/x.db', revision: 7, bytes: 9 } });
    };
    const saved = await saveSnapshot(server.api, 'm1', (bytes) => seen.push(bytes));
    assert.deepEqual([saved.revision, seen], [7, [5]]);
    server.answer = () => lines({ stage: 'saving', bytes: 5 });
    await assert.rejects(
      saveSnapshot(server.api, 'm1', () => undefined),
      /without a result/,
    );
    server.answer = () => lines({ error: 'no space left' });
    await assert.rejects(
      saveSnapshot(server.api, 'm1', () => undefined),
      /^Error: no space left$/,
    );
  });

  it('treats a download with fewer bytes than announced as a failure', async () => {
    const answer = (length: string) => () => new Response('content', { headers: { 'content-length': length } });
    const download = (): Promise<Blob> =>
      downloadSnapshot(server.api, 'm1', 'etcd-1.db', { signal, onBytes: () => undefined });
    server.answer = answer('7');
    assert.equal(await (await download()).text(), 'content');
    server.answer = answer('8');
    await assert.rejects(download(), /7 of 8 bytes arrived/);
    server.answer = () => new Response('content');
    await assert.rejects(download(), /announced no length/);
  });

  it('rejects an archive that the node cannot accept before the upload, and returns the imported names', async () => {
    let sent = 0;
    const send: SendFile = async (path) => {
      assert.equal(path, '/api/v1/nodes/m1/proxy/hyperedge/images');
      sent += 1;
      return '{"stage":"importing"}\n{"result":{"images":[{"id":"sha256:1","names":["app:1"]},{"id":"sha256:2","names":[]}]}}\n';
    };
    const file = new File(['archive'], 'app.tar');
    const upload = (limits: object, sender = send) => {
      server.answer = () => json({ isBusy: false, maxBytes: 100, freeBytes: 100, ...limits });
      return uploadArchive(
        server.api,
        sender,
        { node: 'm1', kind: 'images', file },
        { signal, onSent: () => undefined },
      );
    };
    await assert.rejects(upload({ isBusy: true }), /another archive is being uploaded/);
    await assert.rejects(upload({ maxBytes: 6 }), /app\.tar: 7 B exceed the limit of uploads, 6 B/);
    await assert.rejects(upload({ freeBytes: 6 }), /exceed the free space of the node, 6 B/);
    assert.equal(sent, 0);
    assert.deepEqual(await upload({}), ['app:1', 'sha256:2']);
    await assert.rejects(
      upload({}, async () => '{"stage":"importing"}\n{"error":"archive: no image found for linux/amd64"}\n'),
      /no image found for linux/,
    );
  });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CodedError } from '../../../src/base/errors.ts';
import { compactStore } from '../../../src/store/administration/compact.ts';
import type { EtcdAdmin, StoreAccess } from '../../../src/store/administration/port.ts';

const URLS = ['https://a:2379', 'https://b:2379'];

/** A store of two members that records the calls; the database of each member shrinks by its defragmentation. */
function fakeStore(calls: string[], compact: () => Promise<void> = async () => {}): StoreAccess {
  const bytes = new Map(URLS.map((url) => [url, 100]));
  const member = (url: string) => ({ id: url, name: url.slice(8, 9), peerUrls: [], clientUrls: [url], learner: false });
  const open = (endpoints: readonly string[] = URLS): EtcdAdmin => {
    const [url = ''] = endpoints;
    const admin: Partial<EtcdAdmin> = {
      members: async () => [...URLS.map(member), { ...member('https://c:2379'), clientUrls: [] }],
      status: async () => ({ ...STATUS, dbBytes: bytes.get(url) ?? 0 }),
      compact: async (revision) => {
        calls.push(`compact ${revision}`);
        await compact();
      },
      defragment: async () => {
        calls.push(`defragment ${url}`);
        bytes.set(url, 10);
      },
      clearNoSpace: async () => void calls.push('clear'),
      close: () => {},
    };
    return admin as EtcdAdmin;
  };
  return { endpoints: URLS, open };
}

const STATUS = {
  memberId: '1',
  clusterId: '1',
  revision: 42,
  version: '3.5.30',
  dbBytes: 0,
  dbInUseBytes: 0,
  leader: '1',
  raftTerm: 1,
  raftIndex: 1,
  raftApplied: 1,
  errors: [],
};

test('compacts the history and defragments every member before it disarms the alarm', async () => {
  const calls: string[] = [];
  const compacted = await compactStore(fakeStore(calls));
  assert.deepEqual(calls, ['compact 42', `defragment ${URLS[0]}`, `defragment ${URLS[1]}`, 'clear']);
  assert.deepEqual(compacted, {
    revision: 42,
    members: [
      { name: 'a', beforeBytes: 100, afterBytes: 10 },
      { name: 'b', beforeBytes: 100, afterBytes: 10 },
    ],
  });
});

test('continues if the history was already compacted, and stops at any other error', async () => {
  const refuse = (message: string) => async (): Promise<void> => {
    throw new CodedError('refused', message);
  };
  const calls: string[] = [];
  await compactStore(fakeStore(calls, refuse('etcdserver: mvcc: required revision has been compacted')));
  assert.equal(calls.at(-1), 'clear');
  const others: string[] = [];
  await assert.rejects(compactStore(fakeStore(others, refuse('etcdserver: permission denied'))), /permission denied/);
  assert.deepEqual(others, ['compact 42']);
});

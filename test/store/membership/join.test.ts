import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import type { Message } from '../../../src/store/core/raft/index.ts';
import type { DialPeer, LogState, StoreLog } from '../../../src/store/disk/port.ts';
import { identified } from '../../../src/store/membership/bootstrap.ts';
import { JoinCheck } from '../../../src/store/membership/join.ts';
import { isRemovalPersisted } from '../../../src/store/membership/member-removal.ts';
import { encodeMembers, type MemberTable } from '../../../src/store/replication/peers/peer-protocol.ts';
import { clock } from '../harness.ts';

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const table = (names: Readonly<Record<string, string>>, more: Partial<MemberTable> = {}): MemberTable => ({
  clusterId: 1n,
  members: Object.entries(names).map(([id, name]) => ({ id, name, peerUrls: [`http://${id}`], clientUrls: [] })),
  voters: Object.keys(names),
  written: true,
  ...more,
});
const heartbeat = (from: string): Message => ({ type: 'heartbeat', from, to: 'a', term: 2, commit: 0, round: 1 });

function joinCheck(tables: Readonly<Record<string, MemberTable>>) {
  const stepped: string[] = [];
  const wiped: string[] = [];
  const state = { isNew: true };
  const subject = new JoinCheck({
    id: 'a',
    log: silentLog,
    otherMembers: ['b', 'c'],
    isNew: () => state.isNew,
    fetchMembers: async (member) => {
      const answer = tables[member];
      if (answer === undefined) throw new Error(`${member} does not answer`);
      return answer;
    },
    step: ({ from }) => stepped.push(from),
    wiped: ({ message }) => wiped.push(message),
  });
  const hear = async (from: string): Promise<void> => {
    subject.message(heartbeat(from));
    await settled();
  };
  return { hear, stepped, wiped, state };
}

test('a new member ignores messages of a peer until the member table of the peer confirms the addition', async () => {
  const { hear, stepped, wiped } = joinCheck({ b: table({ a: '', b: 'b', c: 'c' }) });
  await hear('b');
  await hear('b');
  await hear('c');
  await hear('c');
  assert.deepEqual([stepped, wiped], [['b'], []]);
});

test('a member that lost its data learns from a known peer that it was part of the cluster before', async () => {
  const { hear, stepped, wiped } = joinCheck({ b: table({ a: 'n1', c: 'n3', d: 'n2' }) });
  await hear('d');
  assert.deepEqual(stepped, []);
  assert.match(String(wiped), /n1 has been part of the cluster/);
});

test('a new member accepts messages of a peer outside of its configuration only if a known peer lists that peer', async () => {
  const { hear, stepped, wiped } = joinCheck({ b: table({ a: '', c: 'n3', d: 'n2' }) });
  await hear('e');
  await hear('e');
  await hear('d');
  await hear('d');
  assert.deepEqual([stepped, wiped], [['d'], []]);
});

test('a member whose log has entries does not query its peers', async () => {
  const { hear, stepped, wiped, state } = joinCheck({ b: table({ a: 'n1', b: 'n2' }) });
  state.isNew = false;
  await hear('b');
  await hear('d');
  assert.deepEqual([stepped, wiped], [['b', 'd'], []]);
});

test('a removed member may stop once a majority of the voters has stored its removal', () => {
  const knows = table({ b: 'n2', c: 'n3', d: 'n4' }, { voters: ['b', 'c'] });
  const believes = table({ a: 'n1', b: 'n2', c: 'n3', d: 'n4' });
  const forgotten = (tables: Readonly<Record<string, MemberTable>>): boolean =>
    isRemovalPersisted('a', new Map(Object.entries(tables)));
  assert.equal(forgotten({ b: knows, c: knows }), true);
  assert.equal(forgotten({ b: knows, c: believes }), false);
  assert.equal(forgotten({ b: knows, c: { ...knows, written: false } }), false);
  // A learner does not vote.
  assert.equal(forgotten({ b: knows, d: knows }), false);
  assert.equal(forgotten({}), false);
});

/**
 * Log state that a member with an empty directory, listed by the others as 'a', gets from them. Undefined: that peer
 * does not respond.
 */
async function used(...tables: ReadonlyArray<MemberTable | undefined>): Promise<LogState> {
  const dial: DialPeer = ([url = '']) => ({
    connected: true,
    unary: async () => {
      const table = tables[Number(url.slice('http://'.length))];
      if (table === undefined) throw new Error('does not answer');
      return encodeMembers(table);
    },
    stream: () => assert.fail('nothing is to be streamed'),
    close: () => {},
  });
  const empty: LogState = {
    identity: undefined,
    hardState: { term: 0, vote: undefined, commit: 0 },
    base: { index: 0, term: 0 },
    applied: 0,
    compacted: 0,
    reserved: 0,
    leases: [],
    documents: new Map(),
  };
  const storage: Pick<StoreLog, 'initialise' | 'savedPeers'> = {
    initialise: async () => {},
    savedPeers: async () => undefined,
  };
  const others = tables.map((_, i) => ({ name: `n${i + 2}`, peerUrls: [`http://${i}`] }));
  return identified(empty, {
    storage: storage as StoreLog,
    clock,
    log: silentLog,
    name: 'n1',
    peerUrls: ['http://a'],
    clientUrls: [],
    formerCluster: undefined,
    initial: { members: [{ name: 'n1', peerUrls: ['http://a'] }, ...others], token: '', existing: true },
    dial,
    forceNewCluster: undefined,
    bytes: (length) => new Uint8Array(length),
    stopped: () => false,
    logLevel: 1,
    replaces: undefined,
  });
}

test('a joining member queries every peer, because some peers may lag behind', async () => {
  const early = table({ b: 'n2', c: 'n3' });
  const added = table({ a: '', b: 'n2', c: 'n3' });
  const published = table({ a: 'n1', b: 'n2', c: 'n3' });
  assert.equal((await used(added, added)).identity?.memberId, 0xan);
  assert.equal((await used(early, added)).identity?.memberId, 0xan);
  assert.equal((await used(undefined, added)).identity?.memberId, 0xan);
  await assert.rejects(used(early, early), { code: 'bad-config' });
  await assert.rejects(used(added, published), { code: 'wiped' });
  await assert.rejects(used(early, undefined, published), { code: 'wiped' });
});

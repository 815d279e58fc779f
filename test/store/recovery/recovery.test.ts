/** Automatic recovery of members that have lost or corrupted data. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, open, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { crc32 } from 'node:zlib';
import Database from 'better-sqlite3';
import type { Log } from '../../../src/base/log.ts';
import { silentLog } from '../../../src/base/log.ts';
import { createSqliteLog } from '../../../src/store/disk/index.ts';
import { createEtcdServer } from '../../../src/store/index.ts';
import type { Store } from '../../../src/store/port.ts';
import { dissentingMembers } from '../../../src/store/replication/maintenance/corruption.ts';
import { createRpcListener } from '../../../src/wire/grpc/index.ts';
import { type ClusterMember, cluster } from '../cluster-harness.ts';
import { clock, connect, remove, temporaryDirectory } from '../harness.ts';

const run = promisify(execFile);

interface Listed {
  readonly id: string;
  readonly name: string;
  readonly learner: boolean;
}

async function list(member: ClusterMember): Promise<Listed[]> {
  const { stdout: output } = await run('etcdctl', [`--endpoints=${member.endpoint}`, 'member', 'list'], {
    env: { ...process.env, ETCDCTL_API: '3' },
    timeout: 10_000,
  });
  return output
    .trim()
    .split('\n')
    .map((line) => line.split(', '))
    .map(([id = '', , name = '', , , learner]) => ({ id, name, learner: learner === 'true' }));
}

async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  const deadline = performance.now() + 20_000;
  for (;;) {
    const found = await look().catch(() => undefined);
    if (found !== undefined) return found;
    assert.ok(performance.now() < deadline, what);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Overwrites bytes in the middle of the file. */
async function damage(file: string): Promise<void> {
  const { size } = await stat(file);
  const handle = await open(file, 'r+');
  for (let at = 8192; at < size; at += 4096) await handle.write(Buffer.alloc(64, 0xa5), 0, 64, at + 2048);
  await handle.close();
}

async function quarantined(member: ClusterMember): Promise<string[]> {
  return (await readdir(member.directory)).filter((name) => /^revisions\.db\.damaged-\d{8}T\d{6}Z$/.test(name));
}

describe('recovery of one of three members', () => {
  let directory = '';
  let members: ClusterMember[] = [];
  let store: Store;
  const lines: string[] = [];
  const log: Log = {
    ...silentLog,
    named: () => log,
    error: (message) => lines.push(message),
    warn: (message) => lines.push(message),
  };
  const [watched] = [2] as const;
  const victim = (): ClusterMember => members[watched] as ClusterMember;
  const fill = async (prefix: string): Promise<void> => {
    for (let i = 0; i < 40; i += 1)
      await store.commit({ guards: [], puts: [{ key: `${prefix}/${i}`, value: Buffer.alloc(2000, 'x') }] });
  };
  /** Waits until the member has rejoined with another ID, votes and has all data. */
  const isBack = async (oldId: string): Promise<void> => {
    const own = await until('it votes under a new id', async () => {
      const found = (await list(members[0] as ClusterMember)).find(({ name }) => name === victim().name);
      return found !== undefined && found.id !== oldId && !found.learner ? found : undefined;
    });
    assert.equal((await list(members[0] as ClusterMember)).length, 3);
    assert.notEqual(own.id, oldId);
    await fill('after');
    const there = connect(victim().endpoint, undefined);
    const mine = await until('an answer', () => there.range('\0', '\xff'));
    const others = await store.range('\0', '\xff');
    assert.deepEqual(mine.kvs, others.kvs);
    await there.close();
  };
  const idOf = async (): Promise<string> =>
    (await list(members[0] as ClusterMember)).find(({ name }) => name === victim().name)?.id as string;

  before(async () => {
    directory = await temporaryDirectory();
    members = await cluster(directory, 3);
    await Promise.all(members.map((each) => each.start(false, { log })));
    store = connect((members[0] as ClusterMember).endpoint, undefined);
    await fill('before');
    await until('all names', async () =>
      (await list(members[0] as ClusterMember)).every(({ name }) => name !== '') ? true : undefined,
    );
  });
  after(async () => {
    await store.close();
    await Promise.all(members.map((each) => each.stop()));
    await remove(directory);
  });

  it('rebuilds a member whose database file is damaged from its peers, and keeps the damaged file', async () => {
    const before = await idOf();
    await victim().stop();
    await damage(join(victim().directory, 'revisions.db'));
    await victim().start(false, { log });
    await isBack(before);
    assert.equal((await quarantined(victim())).length, 1);
    assert.ok(lines.some((line) => line.includes('rebuilding this member from its peers')));
    assert.deepEqual(victim().fatal, []);
  });

  it('a member whose disk was wiped joins with a new ID and does not vote under its old one', async () => {
    const before = await idOf();
    await victim().stop();
    await rm(victim().directory, { recursive: true });
    await mkdir(victim().directory);
    await victim().start(false, { log });
    await isBack(before);
  });

  it('rejects a wiped member, as etcd does, until it starts with the correct cluster token', async () => {
    const before = await list(members[0] as ClusterMember);
    const old = await idOf();
    const wipe = async (): Promise<void> => {
      await victim().stop();
      await rm(victim().directory, { recursive: true });
      await mkdir(victim().directory);
    };
    await wipe();
    lines.length = 0;
    const initialCluster = {
      members: members.map(({ name, peerUrl }) => ({ name, peerUrls: [peerUrl] })),
      token: 'another',
      existing: false,
    };
    await victim().start(false, { log, initialCluster });
    const complaints = (): number => lines.filter((line) => line.includes('belongs to another cluster')).length;
    // The wiped member logs complaints about both other members, and they log complaints about it.
    await until('they ignore each other', async () => (complaints() >= 4 ? true : undefined));
    assert.ok(lines.some((line) => line.includes('another cluster with a different token')));
    assert.deepEqual(await list(members[0] as ClusterMember), before);
    await fill('without it');
    const args = [`--endpoints=${victim().endpoint}`, 'get', '--consistency=s', '--keys-only', 'without it/1'];
    const { stdout } = await run('etcdctl', args, { env: { ...process.env, ETCDCTL_API: '3' } });
    assert.equal(stdout, '');
    await wipe();
    await victim().start(false, { log });
    await isBack(old);
  });

  it('a member that lost the end of its log replaces itself by a member with a new ID', async () => {
    const before = await idOf();
    await victim().stop();
    await cp(victim().directory, join(directory, 'older'), { recursive: true });
    await victim().start(false, { log });
    await fill('lost');
    const there = connect(victim().endpoint, undefined);
    await until('it has caught up', async () => ((await there.get('lost/39')).kv === undefined ? undefined : true));
    await there.close();
    await victim().stop();
    await rm(victim().directory, { recursive: true });
    await cp(join(directory, 'older'), victim().directory, { recursive: true });
    await victim().start(false, { log });
    await isBack(before);
  });

  it('a member with an unreadable file queries its saved peers if its configuration names no other member', async () => {
    const before = await idOf();
    await victim().stop();
    await writeFile(join(victim().directory, 'revisions.db'), 'nothing');
    const initialCluster = {
      members: [{ name: victim().name, peerUrls: [victim().peerUrl] }],
      token: 'test',
      existing: false,
    };
    await victim().start(false, { log, initialCluster });
    await isBack(before);
  });

  it('detects and replaces a member whose data differs from that of the majority', async () => {
    const before = await idOf();
    await victim().stop();
    const db = new Database(join(victim().directory, 'revisions.db'));
    const row = db.prepare('SELECT revision, idx, term, events FROM revision ORDER BY revision DESC LIMIT 1').get() as {
      revision: number;
      idx: number;
      term: number;
      events: Buffer;
    };
    // The value is changed and the checksum is correct, so only a comparison detects it.
    row.events[row.events.length - 1] = 'y'.charCodeAt(0);
    const crc = crc32(row.events, (Math.imul(row.idx, 0x9e37_79b1) ^ row.term) >>> 0);
    db.prepare('UPDATE revision SET events = ?, crc = ? WHERE revision = ?').run(row.events, crc, row.revision);
    db.close();
    for (const each of members) if (each !== victim()) await each.stop();
    await Promise.all(members.map((each) => each.start(false, { log, compareMs: 500 })));
    await isBack(before);
    assert.ok(lines.includes('member data differs from the majority'), lines.join('\n'));
  });
});

it('a single member leaves its damaged file unchanged and reports how to restore the data', async () => {
  const directory = await temporaryDirectory();
  const server = () =>
    createEtcdServer({
      storage: createSqliteLog({ directory, log: silentLog }),
      listener: createRpcListener({ host: '127.0.0.1', port: 0, log: silentLog }),
      clock,
      log: silentLog,
      name: 'alone',
      clientUrls: [],
      onFatal: () => {},
    });
  const first = server();
  const { host, port } = await first.start();
  const store = connect(`http://${host}:${port}`, undefined);
  for (let i = 0; i < 40; i += 1)
    await store.commit({ guards: [], puts: [{ key: `k${i}`, value: Buffer.alloc(2000, 'x') }] });
  await store.close();
  await first.stop();
  await damage(join(directory, 'revisions.db'));
  const names = await readdir(directory);
  await assert.rejects(server().start(), /damaged.*no other member.*restore a snapshot/);
  assert.deepEqual(await readdir(directory), names);
  await remove(directory);
});

it('identifies a member with different data only if a majority has equal hashes', () => {
  const from = (...hashes: number[]): ReadonlyMap<string, number> => new Map(hashes.map((hash, i) => [`m${i}`, hash]));
  assert.deepEqual(dissentingMembers(from(7, 7, 7), 2), []);
  assert.deepEqual(dissentingMembers(from(7, 8, 7), 2), ['m1']);
  assert.deepEqual(dissentingMembers(from(7, 8), 2), ['0']);
  assert.deepEqual(dissentingMembers(from(7, 8, 9), 2), ['0']);
  assert.deepEqual(dissentingMembers(from(7, 7, 8, 8, 7), 3), ['m2', 'm3']);
});

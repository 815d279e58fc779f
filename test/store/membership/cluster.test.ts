import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { storeRevision } from '../../../src/base/brand.ts';
import type { Store } from '../../../src/store/port.ts';
import { EtcdClient } from '../../conformance/etcd/client.ts';
import { type ClusterMember, cluster, levelReached, member, runningCluster } from '../cluster-harness.ts';
import { connect, remove, temporaryDirectory } from '../harness.ts';

const run = promisify(execFile);

async function etcdctl(endpoints: readonly ClusterMember[], ...args: string[]): Promise<string> {
  const to = `--endpoints=${endpoints.map((each) => each.endpoint).join()}`;
  const { stdout } = await run('etcdctl', [to, ...args], {
    env: { ...process.env, ETCDCTL_API: '3' },
    timeout: 20_000,
  });
  return stdout;
}

async function put(store: Store, key: string, value: string): Promise<number> {
  const { revision } = await store.commit({ guards: [], puts: [{ key, value: Buffer.from(value) }] });
  return revision;
}

async function value(store: Store, key: string): Promise<string | undefined> {
  const { kv } = await store.get(key);
  return kv === undefined ? undefined : Buffer.from(kv.value).toString();
}

interface Status {
  readonly member: ClusterMember;
  readonly leads: boolean;
}

async function statuses(members: readonly ClusterMember[]): Promise<Status[]> {
  return Promise.all(
    members.map(async (each) => {
      const text = await etcdctl([each], 'endpoint', 'status', '-w', 'json');
      const [{ Status: status }] = JSON.parse(text) as [{ Status: { leader?: number; header: { member_id: number } } }];
      return { member: each, leads: status.leader === status.header.member_id };
    }),
  );
}

async function leaderOf(members: readonly ClusterMember[]): Promise<ClusterMember> {
  for (;;) {
    const leader = (await statuses(members)).find(({ leads }) => leads);
    if (leader !== undefined) return leader.member;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

describe('three members', () => {
  let running: Awaited<ReturnType<typeof runningCluster>>;
  let directory = '';
  let members: ClusterMember[] = [];
  before(async () => {
    running = await runningCluster(3);
    ({ directory, members } = running);
  });
  after(() => running.remove());

  it('any of three members accepts a write that is immediately readable on every other member', async () => {
    const stores = members.map((each) => connect(each.endpoint, undefined));
    for (let i = 0; i < 30; i += 1) {
      const writer = stores[i % 3] as Store;
      const reader = stores[(i + 1) % 3] as Store;
      const revision = await put(writer, `k${i}`, `v${i}`);
      assert.equal(revision, i + 2);
      assert.equal(await value(reader, `k${i}`), `v${i}`);
    }
    for (const store of stores) await store.close();
  });

  it('delivers every event in order to watches on each of three members', async () => {
    const stores = members.map((each) => connect(each.endpoint, undefined));
    const seen: number[][] = [[], [], []];
    const from = (await (stores[0] as Store).get('x')).revision + 1;
    stores.forEach((store, i) => {
      store.watch('w/', 'w0', storeRevision(from), {
        events: (events) => seen[i]?.push(...events.map(({ kv }) => kv.modRevision)),
        progress: () => {},
        closed: (error) => assert.fail(error),
      });
    });
    const revisions: number[] = [];
    for (let i = 0; i < 20; i += 1) revisions.push(await put(stores[i % 3] as Store, `w/${i}`, 'v'));
    while (seen.some((list) => list.length < 20)) await new Promise((resolve) => setTimeout(resolve, 10));
    for (const list of seen) assert.deepEqual(list, revisions);
    for (const store of stores) await store.close();
  });

  it('two members continue after the leader stops, and the former leader returns as a follower with all data', async () => {
    const leader = await leaderOf(members);
    const others = members.filter((each) => each !== leader);
    const store = connect((others[0] as ClusterMember).endpoint, undefined);
    await put(store, 'a', 'before');
    const began = performance.now();
    await leader.stop();
    await put(store, 'a', 'after');
    const took = performance.now() - began;
    assert.ok(took < 2000, `${took} ms`);
    await leader.start();
    const back = connect(leader.endpoint, undefined);
    assert.equal(await value(back, 'a'), 'after');
    await back.close();
    await store.close();
  });

  it('without a quorum, rejects linearizable reads but serves serializable reads', async () => {
    const [first, second, third] = members as [ClusterMember, ClusterMember, ClusterMember];
    const store = connect(first.endpoint, undefined, { requestTimeoutMs: 1500 });
    await put(store, 'q', 'there');
    await Promise.all([second.stop(), third.stop()]);
    await assert.rejects(store.get('q'));
    assert.equal(await etcdctl([first], 'get', 'q', '--consistency=s', '--print-value-only'), 'there\n');
    await Promise.all([second.start(), third.start()]);
    assert.equal(await value(store, 'q'), 'there');
    await store.close();
  });

  it('grants and reads a lease through any member, and expires it once', async () => {
    const stores = members.map((each) => connect(each.endpoint, undefined));
    const lease = await (stores[0] as Store).grantLease(2);
    await (stores[1] as Store).commit({ guards: [], puts: [{ key: 'leased', value: Buffer.from('x'), lease }] });
    const id = BigInt(lease).toString(16);
    const left = await etcdctl([members[2] as ClusterMember], 'lease', 'timetolive', id, '--keys');
    assert.match(left, /granted with TTL\(2s\), remaining\([12]s\), attached keys\(\[leased\]\)/);
    const gone = performance.now() + 10_000;
    while ((await value(stores[2] as Store, 'leased')) !== undefined && performance.now() < gone) {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    assert.equal(await value(stores[2] as Store, 'leased'), undefined);
    for (const store of stores) await store.close();
  });

  it('three members return equal hashes, also after a compaction', async () => {
    const store = connect((members[0] as ClusterMember).endpoint, undefined);
    for (let i = 0; i < 50; i += 1) await put(store, `h${i % 5}`, String(i));
    const { revision } = await store.get('h0');
    await store.compact(storeRevision(revision - 10));
    await new Promise((resolve) => setTimeout(resolve, 300));
    const hashes = await Promise.all(
      members.map(async (each) => (await etcdctl([each], 'endpoint', 'hashkv', `--rev=${revision}`)).split(',')[1]),
    );
    assert.equal(new Set(hashes).size, 1, hashes.join());
    await store.close();
  });

  it('the leader transfers its leadership to another member on request', async () => {
    const leader = await leaderOf(members);
    const target = members.find((each) => each !== leader) as ClusterMember;
    const list = await etcdctl(members, 'member', 'list');
    const id = list
      .split('\n')
      .find((line) => line.includes(`, ${target.name}, `))
      ?.split(',')[0] as string;
    const output = await etcdctl([leader], 'move-leader', id);
    assert.match(output, /Leadership transferred/);
    assert.equal(await leaderOf(members), target);
  });

  it('every member accepts tokens issued by any member, and checks permissions of lock requests', async () => {
    await levelReached(members);
    const clients = members.map(({ endpoint }) => new EtcdClient(endpoint));
    for (const command of ['user add root:pw', 'user grant-role root root', 'user add alice:pw', 'role add r'])
      await etcdctl(members, ...command.split(' '));
    for (const command of ['role grant-permission r readwrite locks/ locks0', 'user grant-role alice r', 'auth enable'])
      await etcdctl(members, ...command.split(' '));
    try {
      for (const issuer of clients) {
        const { token } = await issuer.call('etcdserverpb.Auth/Authenticate', { name: 'alice', password: 'pw' });
        for (const client of clients) {
          client.token = token;
          assert.equal((await client.range({ key: 'locks/none' })).count, 0);
          await assert.rejects(client.range({ key: 'a' }), /permission denied/);
          const { ID: lease } = await client.grant(0n, 60);
          const { key } = await client.call('v3lockpb.Lock/Lock', { name: 'locks/one', lease });
          await client.call('v3lockpb.Lock/Unlock', { key });
          await assert.rejects(client.call('v3lockpb.Lock/Lock', { name: 'other', lease }), /permission denied/);
        }
      }
    } finally {
      for (const client of clients) client.close();
      await etcdctl(members, '--user', 'root:pw', 'auth', 'disable');
    }
  });

  it('rejects the addition of a learner if the responding members would have no quorum with it', async () => {
    const away = members.find((each) => each !== members[0]) as ClusterMember;
    const others = members.filter((each) => each !== away);
    await away.stop();
    let port = 0;
    // The leader takes a moment to detect that a member is unreachable or has returned.
    const addUntil = async (endpoints: readonly ClusterMember[], wanted: RegExp): Promise<void> => {
      const until = performance.now() + 60_000;
      for (;;) {
        port += 1;
        const flags = ['--learner', `--peer-urls=http://127.0.0.1:${port}`];
        const output = await etcdctl(endpoints, 'member', 'add', 'l', ...flags).catch(
          (error: { stderr: string }) => error.stderr,
        );
        const [, id] = /Member +([0-9a-f]+) added/.exec(output) ?? [];
        if (id !== undefined) await etcdctl(endpoints, 'member', 'remove', id);
        if (wanted.test(output)) return;
        assert.ok(performance.now() < until, output);
      }
    };
    await addUntil(others, /etcdserver: unhealthy cluster/);
    await away.start();
    await addUntil(members, / added/);
  });

  it('adds a member that lacks compacted log entries, and removes a member', async () => {
    const store = connect((members[0] as ClusterMember).endpoint, undefined);
    for (let i = 0; i < 200; i += 1) await put(store, `many/${i}`, 'x'.repeat(1000));
    const fourth = await member(directory, 'm3', members);
    const added = await etcdctl(members, 'member', 'add', 'm3', `--peer-urls=${fourth.peerUrl}`);
    assert.match(added, /added to cluster/);
    await fourth.start(true);
    const there = connect(fourth.endpoint, undefined);
    assert.equal(await value(there, 'many/199'), 'x'.repeat(1000));
    assert.equal(await value(there, 'a'), 'after');
    const list = await etcdctl([fourth], 'member', 'list');
    assert.equal(list.trim().split('\n').length, 4);
    const id = list
      .split('\n')
      .find((line) => line.includes(fourth.peerUrl))
      ?.split(',')[0] as string;
    assert.match(await etcdctl(members, 'member', 'remove', id), /removed from cluster/);
    const deadline = performance.now() + 5000;
    while (fourth.fatal.length === 0 && performance.now() < deadline)
      await new Promise((resolve) => setTimeout(resolve, 50));
    assert.match(String(fourth.fatal[0]), /permanently removed/);
    await there.close();
    await fourth.stop();
    await rm(fourth.directory, { recursive: true, force: true });
    await put(store, 'a', 'still');
    await store.close();
  });
});

describe('learners', () => {
  it('a learner does not serve client requests', async () => {
    const running = await runningCluster(1);
    const learner = await member(running.directory, 'm1', running.members);
    try {
      await etcdctl(running.members, 'member', 'add', 'm1', '--learner', `--peer-urls=${learner.peerUrl}`);
      await learner.start(true);
      const ask = async (path: string) => {
        const answer = await fetch(`${learner.endpoint}${path}`);
        return { status: answer.status, body: await answer.text() };
      };
      // The new member learns from the other members that it is a learner.
      const until = performance.now() + 20_000;
      while ((await ask('/readyz')).status === 200 && performance.now() < until)
        await new Promise((resolve) => setTimeout(resolve, 20));
      assert.deepEqual(await ask('/readyz/non_learner'), {
        status: 503,
        body: '[-]non_learner failed: not supported for learner\n',
      });
      assert.equal((await ask('/livez')).status, 200);
    } finally {
      await learner.stop();
      await running.remove();
    }
  });

  it('limits the number of learners', async () => {
    const directory = await temporaryDirectory();
    const members = await cluster(directory, 1);
    const [only] = members as [ClusterMember];
    try {
      await only.start(false, { maxLearners: 2 });
      const add = (port: number): Promise<string> =>
        etcdctl(members, 'member', 'add', 'l', '--learner', `--peer-urls=http://127.0.0.1:${port}`);
      await add(1);
      await add(2);
      await assert.rejects(add(3), /too many learner members in cluster/);
    } finally {
      await only.stop();
      await remove(directory);
    }
  });
});

/** Recovery from quorum loss as in the runbook, with processes and user commands. */
import assert from 'node:assert/strict';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { done, etcdctl, hyperedge, killAll, type Store, start } from '../../host/stores.ts';
import { freePort } from '../../support/ports.ts';

let directory = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hyperedge-recover-'));
});
after(() => rm(directory, { recursive: true, force: true }));
afterEach(killAll);

interface Member {
  readonly name: string;
  readonly data: string;
  readonly ports: readonly [number, number];
  readonly peer: string;
}

async function makeMember(name: string): Promise<Member> {
  const ports = [await freePort(), await freePort()] as const;
  return { name, data: join(directory, name), ports, peer: `http://127.0.0.1:${ports[1]}` };
}

const listOf = (members: readonly Member[]): string => members.map(({ name, peer }) => `${name}=${peer}`).join();

async function keyCount(endpoint: string): Promise<number> {
  return (await etcdctl(endpoint, 'get', 'k', '--prefix', '--keys-only')).split('\n').filter((line) => line !== '')
    .length;
}

test('recovers a cluster after the loss of two of three members, and adds members again', {
  timeout: 180_000,
}, async () => {
  const members = [await makeMember('m0'), await makeMember('m1'), await makeMember('m2')];
  const all = ['--initial-cluster', listOf(members)];
  const stores = await Promise.all(members.map((member) => start('ours', { ...member, args: all })));
  const [one, two, three] = stores as [Store, Store, Store];
  const [m0, m1, m2] = members as [Member, Member, Member];
  for (let i = 0; i < 10; i += 1) await etcdctl(one.endpoint, 'put', `k${i}`, `v${i}`);
  const recover = ['members', 'recover', '--data-dir', m0.data, '--endpoints', one.endpoint];

  // While there is a quorum, the command does nothing.
  await three.kill();
  const early = await hyperedge(...recover, '--dry-run');
  assert.equal(early.code, 1);
  assert.match(early.err, /2 of 3 voters are reachable \(m0, m1\), which is a quorum/);
  await two.kill();

  const running = await hyperedge(...recover, '--dry-run');
  assert.equal(running.code, 0, running.err);
  assert.match(running.out, /m0 .* this member, running .* 11\n/);
  assert.match(running.out, /m1 +\w+ +gone +- /);
  assert.match(running.out, /the only member of the cluster will be m0/);
  const alive = await hyperedge(...recover);
  assert.equal(alive.code, 1);
  assert.match(alive.err, /stop the process that serves/);
  const lonely = await hyperedge('members', '--endpoints', one.endpoint);
  assert.equal(lonely.code, 1);
  assert.match(lonely.err, /no quorum: the store rejects writes/);

  await one.kill();
  const looked = await hyperedge(...recover, '--dry-run', '-o', 'json');
  const plan = JSON.parse(looked.out);
  assert.deepEqual([plan.running, plan.self.name, plan.best.name, plan.self.end.lastRevision], [false, 'm0', 'm0', 11]);
  assert.equal(plan.lost, undefined);
  const output = await done(...recover);
  assert.match(output, new RegExp(`hyperedge members add m1 ${m1.peer}\n`));
  const again = await start('ours', { ...m0, args: all });
  assert.equal(await keyCount(again.endpoint), 10);
  await etcdctl(again.endpoint, 'put', 'k10', 'v10');

  const there = [m0];
  for (const member of [m1, m2]) {
    await rename(member.data, `${member.data}.old`);
    for (;;) {
      const added = await hyperedge('members', 'add', member.name, member.peer, '--endpoints', again.endpoint);
      if (added.code === 0) {
        assert.match(added.out, /ETCD_INITIAL_CLUSTER_STATE="existing"/);
        break;
      }
      assert.match(added.err, /not enough started members|unhealthy/);
    }
    there.push(member);
    const args = ['--initial-cluster', listOf(there), '--initial-cluster-state', 'existing'];
    const store = await start('ours', { ...member, args });
    assert.equal(await keyCount(store.endpoint), 11);
  }
  const listed = JSON.parse(await done('members', '-o', 'json', '--endpoints', again.endpoint));
  assert.deepEqual(listed.map(({ name, state }: { name: string; state: string }) => `${name} ${state}`).sort(), [
    'm0 ok',
    'm1 ok',
    'm2 ok',
  ]);
  const removed = await done('members', 'remove', 'm2', '--endpoints', again.endpoint);
  assert.match(removed, /member m2 \(\w+\) removed/);
  assert.match(
    (await hyperedge('members', 'remove', 'm2', '--endpoints', again.endpoint)).err,
    /no member is called m2; there are: /,
  );
});

test('hyperedge members recover requires --user if auth is enabled', { timeout: 300_000 }, async () => {
  const members = [await makeMember('a0'), await makeMember('a1'), await makeMember('a2'), await makeMember('a3')];
  const all = ['--initial-cluster', listOf(members)];
  const stores = await Promise.all(members.map((member) => start('ours', { ...member, args: all })));
  const [one, two, three, four] = stores as [Store, Store, Store, Store];
  const [a0] = members as [Member];
  await etcdctl(one.endpoint, 'user', 'add', 'root:secret');
  await etcdctl(one.endpoint, 'role', 'add', 'root');
  await etcdctl(one.endpoint, 'user', 'grant-role', 'root', 'root');
  await etcdctl(one.endpoint, 'auth', 'enable');
  await etcdctl(one.endpoint, '--user', 'root:secret', 'put', 'k', 'v');
  await three.kill();
  await four.kill();
  const recover = ['members', 'recover', '--data-dir', a0.data, '--endpoints', one.endpoint];

  // Member running: it authenticates the user itself.
  const wrongPassword = await hyperedge(...recover, '--dry-run');
  assert.equal(wrongPassword.code, 1);
  assert.match(wrongPassword.err, /user name is empty/);
  const root = await hyperedge(...recover, '--dry-run', '--user', 'root:secret');
  assert.equal(root.code, 0, root.err);
  assert.match(root.out, /a0 .* this member, running /);
  assert.match(root.out, /a1 +\w+ +answers /);

  // Member stopped: local data is read, and the other survivor is queried. Its progress is public, as in etcd's
  // `endpoint status`.
  await one.kill();
  const unnamed = await hyperedge(...recover, '--dry-run');
  assert.equal(unnamed.code, 0, unnamed.err);
  assert.match(unnamed.out, /a1 +\w+ +answers /);
  // A wrong password does not mark the member as lost.
  const refused = await hyperedge(...recover, '--user', 'root:wrong');
  assert.equal(refused.code, 1, refused.out);
  assert.match(refused.err, /a1 rejected the request.*authentication failed.*give --user/);
  assert.match(refused.out, /a1 +\w+ +refuses /);
  const looked = await hyperedge(...recover, '--user', 'root:secret', '--dry-run', '-o', 'json');
  assert.equal(looked.code, 0, looked.err);
  const plan = JSON.parse(looked.out);
  assert.equal(plan.members.find(({ name }: { name: string }) => name === 'a1').state, 'answers');
  await two.kill();
  assert.match(await done(...recover, '--user', 'root:secret'), /is ready: start the store/);
  const again = await start('ours', { ...a0, args: all });
  assert.equal(await etcdctl(again.endpoint, '--user', 'root:secret', 'get', 'k'), 'k\nv\n');
});

test('--force-new-cluster has the same effect as in etcd', { timeout: 120_000 }, async () => {
  const members = [await makeMember('f0'), await makeMember('f1')];
  const all = ['--initial-cluster', listOf(members)];
  const [one, two] = (await Promise.all(members.map((member) => start('ours', { ...member, args: all })))) as [
    Store,
    Store,
  ];
  await etcdctl(one.endpoint, 'put', 'k', 'v');
  await two.kill();
  await one.kill();
  const alone = await start('ours', { ...(members[0] as Member), args: [...all, '--force-new-cluster'] });
  assert.equal(await etcdctl(alone.endpoint, 'get', 'k'), 'k\nv\n');
  assert.equal((await etcdctl(alone.endpoint, 'member', 'list')).trim().split('\n').length, 1);
});

/** Store members as processes under load, with faults. `test/drills` has longer versions. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, open, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Writer } from '../../src/wire/protobuf/protobuf.ts';
import { drillLeaderLoss, drillRandomKills } from '../drills/drills.ts';
import { Journal, untilWritable } from '../drills/journal.ts';
import { Network } from '../drills/network.ts';
import { connect, eventually, type Member, Members, sleep } from '../drills/processes.ts';
import { run } from './harness.ts';

test('loses no write and applies no write twice when members are killed at random under load', async () => {
  const summary = await drillRandomKills(15, 42);
  assert.ok(summary.acknowledged > 100, `${summary.acknowledged} writes`);
});

test('resumes writes soon after the leader is killed, stopped or suspended', async () => {
  const killed = await drillLeaderLoss('SIGKILL', 3);
  assert.ok(Math.max(...killed) < 2000, killed.join());
  const ended = await drillLeaderLoss('SIGTERM', 3);
  assert.ok(Math.max(...ended) < 1000, ended.join());
  const paused = await drillLeaderLoss('SIGSTOP', 1);
  assert.ok(Math.max(...paused) < 3000, paused.join());
});

test('a leader that was suspended for five seconds commits no entry', async () => {
  await using members = await Members.make(3);
  members.start();
  const leader = await members.leader();
  const journal = new Journal(members.all, 3, 5);
  await sleep(500);
  leader.signal('SIGSTOP');
  await sleep(5000);
  leader.signal('SIGCONT');
  await sleep(1000);
  assert.notEqual(await members.leader(), leader);
  const { acknowledged, longestGapMs } = await journal.finish();
  assert.ok(acknowledged > 50, `${acknowledged} writes`);
  assert.ok(longestGapMs < 4000, `nothing was written for ${longestGapMs} ms`);
  await members.equal();
});

test('the store loses no write with a packet loss of thirty percent', async () => {
  await using network = await Network.make(3);
  await using members = await Members.make(3, (host) => ({
    host: network.address(host),
    through: network.through(host),
  }));
  members.start();
  await members.leader();
  const hosts = [0, 1, 2];
  for (const host of hosts)
    await network.lose(
      host,
      hosts.filter((each) => each !== host),
      30,
    );
  const journal = new Journal(members.all, 3, 5);
  await eventually('40 acknowledged writes', 120_000, async () => (journal.acknowledged >= 40 ? true : undefined));
  for (const host of hosts) await network.heal(host);
  await journal.finish();
  await members.equal();
});

test('serves no linearizable read in a disconnected minority, which rejoins without disturbance', async () => {
  await using network = await Network.make(3);
  await using members = await Members.make(3, (host) => ({
    host: network.address(host),
    through: network.through(host),
  }));
  members.start();
  const leader = await members.leader();
  const alone = members.all.indexOf(leader);
  const others = [0, 1, 2].filter((each) => each !== alone);
  const majority = members.all.filter((member) => member !== leader);
  const before = connect(members.all);
  await before.commit({ guards: [], puts: [{ key: 'a', value: Buffer.from('old') }] });
  await before.close();
  const { term } = await leader.status();
  await network.lose(alone, others, 100);
  for (const host of others) await network.lose(host, [alone], 100);
  await untilWritable(majority, performance.now());
  const there = connect(majority);
  await there.commit({ guards: [], puts: [{ key: 'a', value: Buffer.from('new') }] });
  const cutOff = leader.connect(2000);
  await assert.rejects(cutOff.get('a'));
  await assert.rejects(cutOff.commit({ guards: [], puts: [{ key: 'a', value: Buffer.from('stale') }] }));
  await cutOff.close();
  assert.equal((await leader.status()).term, term);
  const [first] = majority as [Member, ...Member[]];
  const meanwhile = await first.status();
  assert.ok(meanwhile.term > term);
  for (const host of [0, 1, 2]) await network.heal(host);
  await eventually('the disconnected member catches up', 20_000, async () =>
    (await leader.status()).leader === meanwhile.leader ? true : undefined,
  );
  await members.equal();
  assert.equal((await first.status()).term, meanwhile.term);
  assert.equal(Buffer.from((await there.get('a')).kv?.value ?? []).toString(), 'new');
  await there.close();
});

for (const who of ['leader', 'follower'] as const) {
  test(`continues while the disk of the ${who} is full, and uses the disk again when there is space`, async () => {
    const mounts = await mkdtemp(join(tmpdir(), 'hyperedge-full-'));
    const data = (index: number): string => join(mounts, String(index));
    for (const index of [0, 1, 2]) {
      await mkdir(data(index));
      await run('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'drill', data(index)]);
    }
    try {
      await using members = await Members.make(3, (index) => ({ data: data(index) }));
      members.start();
      const leader = await members.leader();
      const victim = who === 'leader' ? leader : (members.all.find((member) => member !== leader) as Member);
      const journal = new Journal(members.all, 3, 10);
      await sleep(500);
      const filler = join(victim.data, 'filler');
      await run('sh', ['-c', 'cat /dev/zero > "$0" 2> /dev/null', filler]);
      await eventually('the disk is full', 20_000, async () =>
        /disk is full/.test(await victim.log()) ? true : undefined,
      );
      const leads = await eventually('a leader with free disk space', 20_000, async () => {
        const found = await members.leader();
        return found === victim ? undefined : found;
      });
      if (who === 'leader') assert.match(await victim.log(), /transferring leadership to a member with free space/);
      else assert.equal(leads, leader);
      const full = journal.acknowledged;
      await eventually('writes meanwhile', 20_000, async () => (journal.acknowledged > full + 50 ? true : undefined));
      await rm(filler);
      await eventually('the member has caught up', 20_000, async () => {
        const [here, there] = await Promise.all([victim.status(), leads.status()]);
        return here.applied + 50 > there.applied ? true : undefined;
      });
      await journal.finish();
      await members.equal();
      assert.ok(members.all.every((member) => member.running));
    } finally {
      for (const index of [0, 1, 2]) await run('umount', ['-l', data(index)]);
      await rm(mounts, { recursive: true });
    }
  });
}

test('refuses writes without a change of leader while all disks are full, and recovers when there is space', async () => {
  const mounts = await mkdtemp(join(tmpdir(), 'hyperedge-full-'));
  const data = (index: number): string => join(mounts, String(index));
  for (const index of [0, 1, 2]) {
    await mkdir(data(index));
    await run('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'drill', data(index)]);
  }
  try {
    await using members = await Members.make(3, (index) => ({ data: data(index) }));
    members.start();
    await members.leader();
    const fillers = members.all.map((member) => join(member.data, 'filler'));
    const journal = new Journal(members.all, 3, 10);
    await sleep(300);
    await Promise.all(fillers.map((filler) => run('sh', ['-c', 'cat /dev/zero > "$0" 2> /dev/null', filler])));
    await eventually('all are full', 30_000, async () =>
      (await Promise.all(members.all.map((member) => member.log()))).every((log) => /disk is full/.test(log))
        ? true
        : undefined,
    );
    const leader = await members.leader();
    const refused = leader.connect(2000);
    await assert.rejects(refused.commit({ guards: [], puts: [{ key: 'too much', value: Buffer.alloc(1000) }] }));
    await refused.close();
    const { term } = await leader.status();
    // Time for several checks for free space.
    await sleep(2500);
    assert.equal((await leader.status()).term, term);
    for (const filler of fillers) await rm(filler);
    const full = journal.acknowledged;
    await eventually('writes again', 20_000, async () => (journal.acknowledged > full + 50 ? true : undefined));
    await journal.finish();
    await members.equal();
  } finally {
    for (const index of [0, 1, 2]) await run('umount', ['-l', data(index)]);
    await rm(mounts, { recursive: true });
  }
});

test('detects a damaged file of a running member, keeps a copy, and rebuilds the member from the other members', async () => {
  await using members = await Members.make(3);
  members.start();
  const leader = await members.leader();
  const victim = members.all.find((member) => member !== leader) as Member;
  const { id } = await victim.status();
  const store = connect(members.all);
  // The values have more bytes than the member caches in memory.
  for (let i = 0; i < 120; i += 1)
    await store.commit({ guards: [], puts: [{ key: `bulk/${i}`, value: Buffer.alloc(100_000, i) }] });
  const path = join(victim.data, 'revisions.db');
  const { size } = await stat(path);
  const file = await open(path, 'r+');
  for (let at = 64 << 10; at + 4096 <= size; at += 4096) await file.write(Buffer.alloc(32, 0xa5), 0, 32, at + 2000);
  await file.close();
  // Reading detects the damage: this comparison, or the daily check.
  await victim.hash(0).catch(() => {});
  await eventually('the member is back under another id', 30_000, async () => {
    const now = await victim.status();
    return now.id !== id && !now.learner && now.revision > 100 ? true : undefined;
  });
  await store.commit({ guards: [], puts: [{ key: 'after', value: Buffer.from('x') }] });
  await members.equal();
  const kept = (await readdir(victim.data)).filter((name) => name.startsWith('revisions.db.damaged-'));
  assert.ok(kept.length > 0);
  assert.match(await victim.log(), /rebuilding this member from its peers/);
  await store.close();
});

test('a member that was removed from the cluster exits with code 0, also when it is started again', async () => {
  await using members = await Members.make(3);
  members.start();
  const leader = await members.leader();
  const victim = members.all.find((member) => member !== leader) as Member;
  const { id } = await victim.status();
  const request = new Writer(16).big(1, id).finish();
  await eventually('removal', 10_000, () => leader.call('/etcdserverpb.Cluster/MemberRemove', request, 5000));
  assert.equal(await victim.exited, 0);
  victim.start(members.all);
  assert.equal(await victim.exited, 0);
  assert.match(await victim.log(), /permanently removed from the cluster.*hyperedge members add/);
});

import assert from 'node:assert/strict';
import { mkdir, rm } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { createEtcdAdmin } from '../../../src/store/client/etcd-admin.ts';
import { type ClusterMember, member, runningCluster } from '../cluster-harness.ts';
import { clock, connect } from '../harness.ts';

let running: Awaited<ReturnType<typeof runningCluster>>;
const joiners: ClusterMember[] = [];
before(async () => {
  running = await runningCluster(1);
});
after(async () => {
  for (const each of joiners) await each.stop();
  await running.remove();
});

const first = (): ClusterMember => running.members[0] as ClusterMember;

async function joining(name: string): Promise<ClusterMember> {
  const created = await member(running.directory, name, running.members);
  joiners.push(created);
  return created;
}

function starting(joiner: ClusterMember): Promise<void> {
  const members = [...running.members, joiner].map(({ name, peerUrl }) => ({ name, peerUrls: [peerUrl] }));
  return joiner.start(true, { initialCluster: { members, token: 'test', existing: true, joins: true } });
}

async function voters(): Promise<string[]> {
  const admin = createEtcdAdmin({ endpoints: [first().endpoint], log: silentLog, clock });
  try {
    const members = await admin.members();
    return members.flatMap(({ learner, name }) => (learner ? [] : [name])).sort();
  } finally {
    admin.close();
  }
}

async function untilVoters(expected: readonly string[]): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    if ((await voters()).join() === expected.join()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.deepEqual(await voters(), expected);
}

test('adds two members that join at the same time, and replicates the data to them', { timeout: 60_000 }, async () => {
  const store = connect(first().endpoint, undefined);
  await store.commit({ guards: [], puts: [{ key: '/a', value: Buffer.from('1') }] });
  const [second, third] = [await joining('j2'), await joining('j3')];
  await Promise.all([starting(second), starting(third)]);
  await untilVoters(['j2', 'j3', 'm0']);
  const own = connect(third.endpoint, undefined);
  assert.equal(Buffer.from((await own.get('/a')).kv?.value ?? '').toString(), '1');
  await Promise.all([store.close(), own.close()]);
});

test('a member that lost its disk joins again with a new ID', { timeout: 60_000 }, async () => {
  const third = joiners[1] as ClusterMember;
  await third.stop();
  await rm(third.directory, { recursive: true });
  await mkdir(third.directory);
  await starting(third);
  await untilVoters(['j2', 'j3', 'm0']);
});

test('promotes a learner with the whole log when the only voter is removed', { timeout: 60_000 }, async () => {
  const pair = await runningCluster(1);
  const voter = pair.members[0] as ClusterMember;
  const learner = await member(pair.directory, 'n1', pair.members);
  const admin = createEtcdAdmin({ endpoints: [voter.endpoint], log: silentLog, clock });
  // The removed member does not answer.
  const successor = createEtcdAdmin({ endpoints: [learner.endpoint], log: silentLog, clock });
  try {
    const members = [voter, learner].map(({ name, peerUrl }) => ({ name, peerUrls: [peerUrl] }));
    await learner.start(true, { initialCluster: { members, token: 'test', existing: true, joins: true } });
    await until(async () => (await admin.members()).some(({ name, learner }) => name === 'n1' && learner));
    const own = (await admin.members()).find(({ name }) => name === voter.name);
    // The leader transfers its leadership first, and the client repeats the request.
    await until(async () => {
      await successor.removeMember(own?.id ?? '').catch(() => undefined);
      const left = await successor.members(2000).catch(() => []);
      return left.map(({ name }) => name).join() === 'n1';
    });
    const store = connect(learner.endpoint, undefined);
    await store.commit({ guards: [], puts: [{ key: '/b', value: Buffer.from('2') }] });
    await store.close();
  } finally {
    admin.close();
    successor.close();
    await learner.stop();
    await pair.remove();
  }
});

async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail('the condition does not hold after 10 s');
}

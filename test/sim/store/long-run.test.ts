/** Tests of behaviour that appears only after minutes or hours of simulated time. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Reader } from '../../../src/wire/protobuf/protobuf.ts';
import type { Member } from './member.ts';
import { ELECTED_MS, Scene } from './scene.ts';

/** Slightly longer than the interval of lease checkpoints. */
const CHECKPOINT_MS = 310_000;
const LEASE = 77n;
const TTL = 900;
/** Tolerance in seconds for restarts, elections and inaccurate clocks. */
const GRACE = 15;

async function leftAt(scene: Scene, member: Member): Promise<number> {
  const answer = await scene.ask(member, 'Lease/LeaseTimeToLive', (out) => out.big(1, LEASE));
  assert.ok(answer.kind === 'ok', JSON.stringify(answer));
  const reader = new Reader(answer.body);
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 3) return reader.int();
    reader.skip();
  }
  return 0;
}

const isAbout = (left: number, seconds: number): void =>
  assert.ok(Math.abs(left - seconds) <= GRACE, `${left} s are left, ${seconds} were to be`);

async function leased(): Promise<Scene> {
  const scene = new Scene(3);
  await scene.pass(ELECTED_MS);
  const [first] = scene.members as [Member];
  const answer = await scene.ask(first, 'Lease/LeaseGrant', (out) => out.int(1, TTL).big(2, LEASE));
  assert.equal(answer.kind, 'ok', JSON.stringify(answer));
  return scene;
}

async function restartAll(scene: Scene): Promise<void> {
  for (const member of scene.members) member.crash(true);
  await scene.pass(100);
  for (const member of scene.members) member.start();
  await scene.pass(ELECTED_MS);
}

/** The members, with the one that all others follow as leader first. */
async function others(scene: Scene): Promise<readonly [leader: Member, ...rest: Member[]]> {
  for (const member of scene.members) {
    const answer = await scene.ask(member, 'Maintenance/Status', (out) => out);
    assert.ok(answer.kind === 'ok', JSON.stringify(answer));
    const reader = new Reader(answer.body);
    for (let field = reader.field(); field !== 0; field = reader.field()) {
      if (field !== 4) reader.skip();
      else {
        const leader = reader.big().toString(16);
        const [leads] = scene.members.filter(({ id }) => id === leader);
        if (leads !== undefined) return [leads, ...scene.members.filter((each) => each !== leads)];
      }
    }
  }
  throw new Error('nobody leads');
}

describe('long lease', () => {
  it('a lease keeps its checkpointed remaining time over a restart of all members', async () => {
    await using scene = await leased();
    await scene.pass(CHECKPOINT_MS);
    const [member] = scene.members as [Member];
    isAbout(await leftAt(scene, member), 590);
    await restartAll(scene);
    isAbout(await leftAt(scene, member), 600);
  });

  it('a lease renewed after a checkpoint has its full TTL again, also after a restart of all members', async () => {
    await using scene = await leased();
    await scene.pass(CHECKPOINT_MS);
    const [member] = scene.members as [Member];
    assert.equal(await scene.renew(member, LEASE), TTL);
    await restartAll(scene);
    isAbout(await leftAt(scene, member), TTL);
  });

  it('consecutive changes of the leader do not extend a lease', async () => {
    await using scene = await leased();
    const begin = scene.nowMs;
    for (let i = 1; i <= 3; i += 1) {
      await scene.pass(60_000);
      const [leader, next] = await others(scene);
      leader.crash(false);
      await scene.pass(ELECTED_MS);
      const left = await leftAt(scene, next as Member);
      isAbout(left, TTL - (scene.nowMs - begin) / 1000);
      leader.start();
      await scene.pass(ELECTED_MS);
    }
  });
});

describe('idle cluster', () => {
  it('an idle cluster of three members writes no data, and lease renewals write none', async () => {
    await using scene = await leased();
    const [member] = scene.members as [Member];
    await scene.put(member, 'last');
    await scene.pass(5_000);
    const commits = (): readonly number[] => scene.members.map(({ disk }) => disk.commits);
    const before = commits();
    await scene.pass(60_000);
    assert.deepEqual(commits(), before);
    for (let i = 0; i < 30; i += 1) {
      assert.equal(await scene.renew(member, LEASE), TTL);
      await scene.pass(1_000);
    }
    assert.deepEqual(commits(), before);
  });
});

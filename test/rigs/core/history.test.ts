/** The history of a rig, over passes of the planner that write their results, fail to write them, or are missed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from '../../../src/api/generated/core/v1.ts';
import { rigNodes } from '../../../src/rigs/core/nodes.ts';
import { planRigs } from '../../../src/rigs/core/plan.ts';
import type { Rig, RigClaim, RigUse } from '../../../src/rigs/kinds/rig-types.ts';
import { rigs } from '../../../src/rigs/kinds/rigs/index.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const at = (seconds: number): string => new Date(NOW + seconds * 1000).toISOString().replace('.000Z', 'Z');
const nodeOf = (name: string): Node => ({
  metadata: { name },
  status: { capacity: { 'rig.hyperedge.dev/board-1': '1' } },
});

/** A cluster whose planner is run at given times. */
class Bench {
  rig: Rig = {
    metadata: { name: 'rig-1' },
    spec: { fixtures: [{ name: 'board', fixture: 'board-1' }], maxLease: '1h' },
  };
  claims: RigClaim[] = [];
  /** Node that has the board. */
  node = 'n1';

  claim(name: string, uid = name, requester = 'ann'): void {
    this.claims.push({
      metadata: { name, namespace: 'lab', uid, creationTimestamp: at(0) as never },
      spec: { rigName: 'rig-1' },
      status: { phase: 'Queued', requester },
    });
  }

  markDeleted(uid: string, second: number): void {
    for (const { metadata } of this.claims)
      if (metadata?.uid === uid) Object.assign(metadata, { deletionTimestamp: at(second) });
  }

  remove(uid: string): void {
    this.claims = this.claims.filter(({ metadata }) => metadata?.uid !== uid);
  }

  /** @param fails Object whose status is not written in this pass. */
  pass(second: number, fails?: 'claims' | 'rig'): void {
    const { rig, claims } = this;
    const snapshot = { rigs: [rig], claims, pods: [], nodes: [nodeOf(this.node)], deviceClaims: [] };
    const plan = planRigs(snapshot, NOW + second * 1000);
    const statusOf = (claim: RigClaim): RigClaim => ({
      ...claim,
      status: plan.claims.get(`lab/${claim.metadata?.name}`) ?? {},
    });
    if (fails !== 'claims') this.claims = claims.map(statusOf);
    if (fails !== 'rig') this.rig = { ...rig, status: plan.rigs.get('rig-1') ?? {} };
  }

  get uses(): string[] {
    return (this.rig.status?.history ?? []).map(
      ({ uid, grantedAt, endedAt, reason }) =>
        `${uid} ${secondOf(grantedAt)}-${endedAt === undefined ? '' : secondOf(endedAt)} ${reason ?? 'open'}`,
    );
  }
}

const secondOf = (time = ''): number => (Date.parse(time) - NOW) / 1000;

test('records a use of a rig when a claim is granted, and its end with the reason', () => {
  const bench = new Bench();
  bench.claim('a');
  bench.claim('b', 'b', 'bob');
  bench.pass(1);
  assert.deepEqual(bench.uses, ['a 1- open']);
  bench.markDeleted('a', 5);
  bench.pass(6);
  assert.deepEqual(bench.uses, ['b 6- open', 'a 1-6 Released']);
  bench.remove('a');
  bench.pass(6 + 3600);
  bench.pass(6 + 4000);
  assert.deepEqual(bench.uses, ['b 6-3606 Expired', 'a 1-6 Released']);
  assert.deepEqual(bench.rig.status?.history?.[1], {
    namespace: 'lab',
    name: 'a',
    uid: 'a',
    requester: 'ann',
    node: 'n1',
    grantedAt: at(1),
    endedAt: at(6),
    reason: 'Released',
  });
});

test('keeps the node on which each use of a rig began, and lists the current node of the rig first', () => {
  const bench = new Bench();
  bench.claim('a');
  bench.pass(1);
  bench.node = 'n2';
  bench.pass(2);
  assert.deepEqual(
    bench.rig.status?.history?.map(({ uid, node }) => [uid, node]),
    [['a', 'n1']],
  );
  bench.markDeleted('a', 3);
  bench.pass(4);
  bench.remove('a');
  bench.claim('b');
  bench.pass(5);
  assert.deepEqual(
    bench.rig.status?.history?.map(({ uid, node }) => [uid, node]),
    [
      ['b', 'n2'],
      ['a', 'n1'],
    ],
  );
  bench.node = 'n3';
  bench.pass(6);
  assert.deepEqual(rigNodes(bench.rig), ['n3', 'n2', 'n1']);
  assert.deepEqual(rigNodes({ spec: { node: 'n9' }, status: { history: [{ uid: 'old' }] } }), ['n9']);
  assert.deepEqual(rigNodes({}), []);
});

test('ends a use now if its claim was deleted while no controller ran', () => {
  const bench = new Bench();
  bench.claim('a', 'first');
  bench.pass(1);
  bench.remove('first');
  bench.claim('a', 'second');
  bench.pass(500);
  assert.deepEqual(bench.uses, ['second 500- open', 'first 1-500 Deleted']);
});

test("repairs the history of a rig after a failed write of the rig's or the claim's status", () => {
  const unwritten = new Bench();
  unwritten.claim('a');
  unwritten.pass(1, 'claims');
  assert.deepEqual(unwritten.uses, ['a 1- open']);
  unwritten.pass(3);
  assert.deepEqual(unwritten.uses, ['a 3- open']);
  // The grant was not written, and the claim is deleted before the next pass.
  const released = new Bench();
  released.claim('a');
  released.pass(1, 'claims');
  released.markDeleted('a', 2);
  released.pass(3);
  assert.deepEqual(released.uses, []);

  const bench = new Bench();
  bench.claim('a');
  bench.pass(1, 'rig');
  assert.deepEqual(bench.uses, []);
  bench.pass(3600 + 1, 'rig');
  bench.pass(3600 + 9);
  assert.deepEqual(bench.uses, ['a 1-3601 Expired']);
  assert.equal(bench.rig.status?.history?.[0]?.node, undefined);
});

test('the history of a rig keeps 50 uses and truncates the name of the requester', () => {
  const bench = new Bench();
  for (let index = 0; index < 60; index += 1) {
    const uid = `c${index}`;
    bench.claim(uid, uid, `${'x'.repeat(255)}😀`);
    bench.pass(index * 10);
    bench.markDeleted(uid, index * 10 + 1);
    bench.pass(index * 10 + 2);
    bench.remove(uid);
  }
  assert.equal(bench.uses.length, 50);
  assert.deepEqual([bench.uses[0], bench.uses.at(-1)], ['c59 590-592 Released', 'c10 100-102 Released']);
  const [newest] = bench.rig.status?.history ?? [];
  assert.equal(newest?.requester, `${'x'.repeat(255)}\uFFFD`);
  assert.deepEqual(rigs.statusStrategy?.validateUpdate?.(bench.rig, bench.rig), []);
});

test('rejects a RigStatus whose history exceeds the limits, with the field path', () => {
  const use: RigUse = { namespace: 'lab', name: 'a', uid: 'a', grantedAt: at(0) };
  const problems = (history: RigUse[]): string[] =>
    (rigs.statusStrategy?.validateUpdate?.({ status: { history } }, {}) ?? []).map(({ field }) => field);
  assert.deepEqual(problems([use]), []);
  assert.deepEqual(problems(Array.from({ length: 51 }, () => use)), ['status.history']);
  assert.deepEqual(
    problems([
      { ...use, requester: 'x'.repeat(257) },
      { ...use, reason: 'Bored' as never },
    ]),
    ['status.history[0].requester', 'status.history[1].reason'],
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import type { Member } from '../../../src/store/membership/cluster.ts';
import { Promoter } from '../../../src/store/membership/promoter.ts';
import type { Engine } from '../../../src/store/replication/engine.ts';

interface Step {
  readonly op: string;
  readonly id: string;
}

/** Leader with one learner. The test sets the learner's progress and the clock. */
function leader(flags: Partial<Member>) {
  let nowMs = 0;
  const timers: { atMs: number; run: () => void }[] = [];
  const changes: Step[] = [];
  const member: Member = { id: 'b', name: '', peerUrls: ['https://10.0.0.2:2380'], clientUrls: [], ...flags };
  const progress = { active: false, state: 'probe', match: 0 };
  const learners = new Set(['b']);
  const engine = {
    leads: true,
    cluster: {
      get members() {
        return learners.has('b') ? [member] : [];
      },
      isLearner: (id: string) => learners.has(id),
      conf: { voters: ['a', 'c'] },
    },
    replica: { raft: { status: () => ({ progress: new Map([['b', progress]]), lastIndex: 1000 }) } },
    changeConf: async ({ steps }: { steps: Step[] }) => {
      changes.push(...steps);
      learners.clear();
    },
  } as unknown as Engine;
  const clock = {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    setTimer: (delayMs: number, run: () => void) => {
      timers.push({ atMs: nowMs + delayMs, run });
      return { cancel: () => {} };
    },
  };
  const promoter = new Promoter(engine, clock, silentLog);
  promoter.consider();
  const pass = async (ms: number): Promise<void> => {
    const untilMs = nowMs + ms;
    for (;;) {
      const next = timers.findIndex(({ atMs }) => atMs <= untilMs);
      if (next < 0) break;
      const [timer] = timers.splice(next, 1);
      nowMs = timer?.atMs ?? nowMs;
      timer?.run();
      await new Promise((resolve) => setImmediate(resolve));
    }
    nowMs = untilMs;
  };
  return { changes, member, progress, pass };
}

test('removes a joining member that is silent for two minutes, but not while it receives a snapshot', async () => {
  const { changes, progress, pass } = leader({ joining: true });
  await pass(110_000);
  assert.deepEqual(changes, []);
  Object.assign(progress, { active: true, state: 'snapshot', match: 5 });
  await pass(300_000);
  assert.deepEqual(changes, [], 'it is being filled');
  Object.assign(progress, { active: false });
  await pass(119_000);
  assert.deepEqual(changes, []);
  await pass(2_000);
  assert.deepEqual(changes, [{ op: 'remove', id: 'b' }]);
});

test('promotes a joining member that has started and has caught up with the log', async () => {
  const { changes, progress, pass } = leader({ joining: true, name: 'h2' });
  Object.assign(progress, { active: true, state: 'replicate', match: 400 });
  await pass(5_000);
  assert.deepEqual(changes, []);
  progress.match = 900;
  await pass(1_000);
  assert.deepEqual(changes, [{ op: 'addVoter', id: 'b' }]);
});

test('never removes a silent learner that an administrator added or that replaces a member', async () => {
  for (const flags of [{}, { replacement: true }]) {
    const { changes, pass } = leader(flags);
    await pass(600_000);
    assert.deepEqual(changes, []);
  }
});

/** Leader whose learners have caught up. */
function caughtUp(voters: readonly string[], joining: readonly string[]) {
  const timers: (() => void)[] = [];
  const changes: Step[][] = [];
  const conf = { voters: [...voters] };
  const learners = new Set(joining);
  const engine = {
    leads: true,
    cluster: {
      get members() {
        return [...learners].map((id) => ({ id, name: `host-${id}`, peerUrls: [], clientUrls: [], joining: true }));
      },
      isLearner: (id: string) => learners.has(id),
      conf,
    },
    replica: {
      raft: {
        status: () => ({
          progress: new Map([...learners].map((id) => [id, { active: true, state: 'replicate', match: 1000 }])),
          lastIndex: 1000,
        }),
      },
    },
    changeConf: async ({ steps }: { steps: Step[] }) => {
      changes.push(steps);
      for (const { id } of steps) {
        learners.delete(id);
        conf.voters.push(id);
      }
    },
  } as unknown as Engine;
  const clock = {
    nowMs: () => 0,
    monotonicMs: () => 0,
    setTimer: (_: number, run: () => void) => {
      timers.push(run);
      return { cancel: () => {} };
    },
  };
  const promoter = new Promoter(engine, clock, silentLog);
  const round = async (): Promise<void> => {
    promoter.consider();
    for (const run of timers.splice(0)) run();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { changes, learners, round };
}

test('promotes the second and the third master in one step, so that no cluster of two voters exists', async () => {
  const { changes, learners, round } = caughtUp(['a'], ['b']);
  for (let each = 0; each < 3; each++) await round();
  assert.deepEqual(changes, []);
  learners.add('c');
  await round();
  assert.deepEqual(changes, [
    [
      { op: 'addVoter', id: 'b' },
      { op: 'addVoter', id: 'c' },
    ],
  ]);
});

test('promotes one learner at once if the number of voters is even', async () => {
  const { changes, round } = caughtUp(['a', 'b'], ['c']);
  await round();
  assert.deepEqual(changes, [[{ op: 'addVoter', id: 'c' }]]);
});

import { type Finding, findingOf, type SimulationOptions, type SimulationResult } from '../outcome.ts';
import type { Bug } from './bugs.ts';
import { type CheckerName, Checkers, Violation } from './checkers.ts';
import { Clients } from './clients.ts';
import { Faults } from './faults.ts';
import { Member, type World } from './member.ts';
import { Network } from './network.ts';
import { Random } from './random.ts';
import { Timeline } from './timeline.ts';
import { Trace } from './trace.ts';

const FAULTS_MS = 3_000;
const RECOVERY_MS = 6_000;
const MAX_MEMBERS = 8;

/**
 * Runs a cluster of 3 to 5 members first with faults, then without, and checks the guarantees of raft and of the store.
 */
export function simulate(seed: number, options: SimulationOptions<Bug> = {}): SimulationResult<CheckerName> {
  const random = new Random(seed);
  const timeline = new Timeline();
  const trace = new Trace(options.keepTrace ?? false);
  const members = new Map<string, Member>();
  const checkers = new Checkers();
  const world: World = {
    random,
    timeline,
    network: new Network(random, timeline),
    trace,
    checkers,
    bug: options.bug,
    member: (id) => members.get(id),
    tuning: {
      electionTicks: 10,
      heartbeatTicks: 2,
      forwardProposals: random.chance(0.3),
      maxAppendBytes: random.pick([1, 300, 4_096]) ?? 1,
      maxCommittedBytes: random.pick([1, 1_000, 1_000_000]) ?? 1,
      maxInflightMessages: random.pick([1, 4, 64]) ?? 1,
      maxInflightBytes: random.pick([200, 100_000]) ?? 200,
      maxUncommittedBytes: random.pick([400, 100_000]) ?? 400,
      maxCachedBytes: random.pick([0, 1_000, 100_000]) ?? 0,
      maxPendingReads: random.pick([2, 1_000]) ?? 2,
    },
  };
  const voters = ['n1', 'n2', 'n3', 'n4', 'n5'].slice(0, 3 + random.below(3));
  for (const id of voters) members.set(id, new Member(id, voters, world));
  const all = (): Member[] => [...members.values()];
  const clients = new Clients(world, all);
  const faults = new Faults(world, {
    members: all,
    newcomer: () => {
      if (members.size >= MAX_MEMBERS) return undefined;
      const id = `n${members.size + 1}`;
      members.set(id, new Member(id, [], world));
      return id;
    },
  });

  let violation: Finding<CheckerName> | undefined;
  try {
    clients.start(4);
    faults.start();
    while (timeline.step(FAULTS_MS));
    faults.stop();
    clients.stop();
    recover(world, all, seed);
    clients.check();
  } catch (error) {
    violation = findingOf(error);
  }
  const { answered } = clients;
  return {
    seed,
    hash: trace.hash(),
    violation,
    trace: trace.lines,
    answered,
    committed: checkers.highestApplied,
    seen: trace.seen,
  };
}

/** Liveness: without faults, a write succeeds and all members of the configuration reach the same state. */
function recover(world: World, all: () => readonly Member[], seed: number): void {
  const { timeline } = world;
  const until = timeline.nowMs + RECOVERY_MS;
  let written = false;
  let requested = 0;
  while (timeline.nowMs < until) {
    const pause = timeline.nowMs + 50;
    while (timeline.step(pause));
    const leader = all()
      .filter((member) => member.role === 'leader')
      .sort((a, b) => b.raft.status().term - a.raft.status().term)[0];
    if (leader === undefined) continue;
    if (!written) {
      const command = { client: 'last', sequence: 1, key: 'z', kind: 'write', expected: 0, value: seed } as const;
      requested++;
      leader.submit(command, (answer) => {
        if (answer.kind === 'done') written = true;
      });
      continue;
    }
    const { conf } = leader.raft.status();
    const members = all().filter((member) => conf.voters.includes(member.id) || conf.learners.includes(member.id));
    const settled = conf.outgoing.length === 0 && members.every((member) => member.applied === leader.applied);
    if (!settled || !conf.voters.includes(leader.id)) continue;
    for (const member of members)
      if (member.digest() !== leader.digest())
        throw new Violation(
          'state machine safety',
          `${member.id} and ${leader.id} have applied the same entries, and their states differ`,
        );
    return;
  }
  const state = all().map((member) => {
    const { role, term, leader, commit, applied, lastIndex, conf } = member.raft.status();
    return `${member.id}: ${role} of ${leader} term ${term} commit ${commit} applied ${applied} last ${lastIndex} voters ${conf.voters} | ${conf.outgoing}`;
  });
  throw new Violation(
    'liveness',
    `${written ? 'some members did not receive all writes' : `none of ${requested} writes was completed`}\n${state.join('\n')}`,
  );
}

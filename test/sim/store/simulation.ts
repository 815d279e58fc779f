import { LogLevel, NEWEST_LEVEL } from '../../../src/store/replication/maintenance/log-level.ts';
import { type Finding, findingOf, type SimulationOptions, type SimulationResult } from '../outcome.ts';
import { Random } from '../raft/random.ts';
import { Timeline } from '../raft/timeline.ts';
import { Trace } from '../raft/trace.ts';
import { Administrators } from './administrators.ts';
import type { Bug, Setting } from './bugs.ts';
import { type CheckerName, Checkers } from './checkers.ts';
import { Clients } from './clients.ts';
import { clusterOf, Damages } from './damage.ts';
import { Faults, type Hosts } from './faults.ts';
import { LeaseClients } from './leases.ts';
import { Member, TIMING, type Tuning } from './member.ts';
import { Network } from './network.ts';
import { Permissions } from './permissions.ts';
import { addAnother, loseQuorum } from './quorum-loss.ts';
import { Quota } from './quota.ts';
import { recover } from './recovery.ts';
import { Sessions } from './sessions.ts';
import { TokenClient } from './tokens.ts';
import { EVERYTHING, Watcher } from './watcher.ts';
import type { World } from './world.ts';

const FAULTS_MS = 8_000;
const MAX_HOSTS = 8;
const QUOTA_BYTES = 8_000;
const SIMPLE_TOKEN_MS = 1_200;
/** Leases with a longer TTL than this are checkpointed. In other runs all leases are shorter. */
const LEASE_CHECKPOINT_MS = 700;
/** Time for a learner to start before faults begin. */
const LEARNER_MS = 1_500;
const UPDATE_STEPS = 20;
const UPDATE_STEP_MS = 50;

/** Runs all pending microtasks. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Runs members of a store first with faults, then without, and checks etcd's guarantees. */
export async function simulate(
  seed: number,
  options: SimulationOptions<Bug> = {},
): Promise<SimulationResult<CheckerName>> {
  const random = new Random(seed);
  const timeline = new Timeline();
  const trace = new Trace(options.keepTrace ?? false);
  const checkers = new Checkers();
  const network: Network = new Network(() => world);
  const world: World = { random, timeline, trace, network, checkers, bug: options.bug };
  const bounds: Omit<Tuning, 'quotaBytes'> = {
    cacheBytes: random.pick([0, 300, 1 << 20]) ?? 0,
    bounds: {
      maxAppendBytes: random.pick([100, 1_000, 1 << 20]) ?? 100,
      maxCachedBytes: random.pick([0, 2_000, 1 << 20]) ?? 0,
      maxUncommittedBytes: random.pick([400, 1 << 20]) ?? 400,
      keepEntries: random.pick([10, 100, 5_000]) ?? 10,
    },
  };
  // Damage and changes of the membership are never combined; see Damages.
  const { damaging, learner, founders, auth, quota, queues, losesQuorum, simple, rolling }: Setting = {
    founders: random.pick([1, 1, 3, 3, 3, 3, 3, 3, 5, 7]) ?? 3,
    damaging: random.chance(0.4),
    learner: random.chance(0.4),
    auth: random.chance(0.3),
    quota: random.chance(0.2),
    queues: random.chance(0.3),
    losesQuorum: random.chance(0.15),
    simple: random.chance(0.5),
    rolling: random.chance(0.3),
    ...options.bug?.setting,
  };
  const tuning: Tuning = {
    ...bounds,
    ...(quota ? { quotaBytes: QUOTA_BYTES } : {}),
    ...(random.chance(0.4) ? { leaseCheckpointMs: LEASE_CHECKPOINT_MS } : {}),
    ...(simple ? { simpleTokenMs: SIMPLE_TOKEN_MS } : {}),
    fragmentBytes: random.pick([60, 400]) ?? 60,
  };
  const members: Member[] = [];
  const add = (founding: boolean): Member => {
    const member: Member = new Member(
      `n${members.length + 1}`,
      world,
      tuning,
      () => ({
        members: founding ? members.slice(0, founders) : members.filter((each) => each === member || !each.gone),
        existing: !founding,
      }),
      options.keepTrace ?? false,
    );
    // Every visible revision is on some disk, or was relaxed.
    member.onCrash = () => {
      const { reaches, reserved } = member.disk.image;
      const kept = Math.max(...members.map((each) => each.disk.image.reaches));
      // A member with an older state loses no visible revision, and neither does a removed member if another one is
      // alone.
      const isElsewhere = members.some((each) => each.alive && clusterOf(each).conf.voters.join() === each.id);
      if (isElsewhere) return;
      if (reaches === kept && checkers.deadSince === undefined) checkers.powerLost(kept, reserved);
    };
    if (founding && rolling) member.level = LogLevel.beginning;
    if (damaging) member.fallback = damages.fallback(member);
    members.push(member);
    return member;
  };
  const clients = new Clients(world, () => members);
  const leases = new LeaseClients(world, () => members);
  const administrators = new Administrators(world, () => members);
  const permissions = new Permissions(world, () => members);
  const tokens = new TokenClient(world, () => members, SIMPLE_TOKEN_MS);
  const sessions = new Sessions(world, () => members);
  const room = new Quota(world, () => members, QUOTA_BYTES);
  const hosts: Hosts = {
    members: () => members,
    newcomer: () => (members.length < MAX_HOSTS ? add(false) : undefined),
  };
  const faults = new Faults(world, hosts, { reconfigures: !damaging });
  /** Resets the clients' expectations after a restore. */
  const forget = (): void => {
    leases.forget();
    administrators.forgetUsers();
    if (auth) permissions.forget();
    tokens.forget();
    sessions.forget();
  };
  const damages = new Damages(world, hosts, forget);
  for (let i = 0; i < founders; i++) add(true);
  const watchers = [0, 1].map(
    (i) => new Watcher(world, `watcher ${i}`, EVERYTHING, i === 0 ? tuning.fragmentBytes : undefined),
  );
  // A watch of some keys and some kinds of events.
  const filter = random.pick([{}, { noPut: true }, { noDelete: true }] as const) ?? {};
  watchers.push(new Watcher(world, 'watcher of some', { key: 'b', end: 'e', prevKv: random.chance(0.5), ...filter }));
  checkers.counts = (id) =>
    members.map(clusterOf).some((cluster) => cluster.conf.voters.includes(id) || (cluster.get(id)?.name ?? '') !== '');
  checkers.onShown = (_revision, events) => {
    leases.shown(events);
    permissions.shown(events);
    sessions.shown(events);
  };
  checkers.onLoss = () => {
    trace.count('lost relaxed writes');
    clients.settle();
    sessions.settle();
  };

  let violation: Finding<CheckerName> | undefined;
  const until = async (time: number): Promise<void> => {
    while (timeline.step(time)) {
      await settled();
      if (rejected !== undefined) throw rejected;
    }
  };
  let rejected: unknown;
  const unhandled = (reason: unknown): void => {
    rejected ??= reason;
  };
  process.on('unhandledRejection', unhandled);
  try {
    for (const member of members) member.start();
    await until(founders === 1 ? 100 : 1_000);
    if (damaging && learner) {
      damages.addLearner();
      await until(timeline.nowMs + LEARNER_MS);
    }
    clients.start(3);
    leases.start(2);
    administrators.start({ alarms: !quota });
    if (auth) permissions.start({ revisions: !simple });
    if (auth && simple) tokens.start();
    if (quota) room.start();
    if (queues) sessions.start(2);
    for (const watcher of watchers) watch(world, watcher, () => members);
    faults.start();
    if (damaging) damages.start();
    await until(FAULTS_MS);
    if (losesQuorum && !damaging && (await loseQuorum(world, hosts, until))) {
      forget();
      for (const watcher of watchers) watcher.startOver();
      addAnother(world, hosts);
    }
    faults.stop();
    damages.stop();
    clients.stop();
    leases.stop();
    administrators.stop();
    permissions.stop();
    tokens.stop();
    sessions.stop();
    for (const member of members)
      if (member.level < NEWEST_LEVEL && !member.gone) await update(member, until, timeline);
    // To continue without the only voter could restore an outdated state.
    if (checkers.soleVoter !== undefined) trace.count('only voter lost');
    else {
      await recover(world, { members, clients, leases, damages, watchers, until, electionMs: TIMING.electionMs });
      if (queues) await sessions.check(until);
      if (quota) await room.check(until);
    }
    for (const watcher of watchers) watcher.check();
    // With the only voter, changes that were never visible are lost as well.
    if (checkers.soleVoter === undefined) {
      clients.check();
      sessions.checkAnswers();
    }
  } catch (error) {
    violation = findingOf(error);
  } finally {
    for (const member of members) member.life?.end();
    // Work in flight may still find violations, which belong to this run.
    await settled();
    process.off('unhandledRejection', unhandled);
  }
  return {
    seed,
    hash: trace.hash(),
    violation,
    trace: trace.lines,
    answered: clients.answered,
    committed: checkers.history.size,
    seen: trace.seen,
  };
}

/** Restarts a member with the newest build, by SIGTERM. */
async function update(member: Member, until: (time: number) => Promise<void>, timeline: Timeline): Promise<void> {
  member.update();
  member.stop();
  for (let tries = 0; member.alive && tries < UPDATE_STEPS; tries += 1) await until(timeline.nowMs + UPDATE_STEP_MS);
  member.crash(false);
  member.start();
}

/** Watches at some member, sometimes slowly, and moves to another member when the connection breaks. */
function watch(world: World, watcher: Watcher, members: () => readonly Member[]): void {
  const { timeline, random } = world;
  let carriedAt = 0;
  const carry = (deliver: () => void): void => {
    carriedAt = Math.max(carriedAt, timeline.nowMs + random.between(0.1, 3));
    timeline.after(carriedAt - timeline.nowMs, deliver);
  };
  const again = (): void => {
    if (!watcher.isOpen) {
      const { life, service } = random.pick(members().filter(({ gone }) => !gone)) ?? {};
      if (life !== undefined && service !== undefined && life.alive && !life.paused)
        watcher.open(service, life, carry, () => {});
    } else if (random.chance(0.1)) watcher.close();
    else if (random.chance(0.11)) watcher.slow();
    else watcher.fast();
    if (random.chance(0.3)) watcher.askProgress();
    timeline.after(random.between(50, 400), again);
  };
  again();
}

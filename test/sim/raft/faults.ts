import { MAX_VOTERS } from '../../../src/store/core/raft/membership.ts';
import type { ConfStep } from '../../../src/store/core/raft/types.ts';
import type { Member, World } from './member.ts';

/** Access to the members, and creation of new ones. */
export interface Cluster {
  members(): readonly Member[];
  /** Creates a member with an empty disk; undefined if there are enough members. */
  newcomer(): string | undefined;
}

/** Injects random faults one after another until it is stopped. */
export class Faults {
  readonly #world: World;
  readonly #cluster: Cluster;
  #stopped = false;

  constructor(world: World, cluster: Cluster) {
    this.#world = world;
    this.#cluster = cluster;
  }

  start(): void {
    this.#world.timeline.after(this.#world.random.between(10, 250), () => {
      if (this.#stopped) return;
      this.#one();
      this.start();
    });
  }

  /** Repairs all links, disks and processes. */
  stop(): void {
    this.#stopped = true;
    const { network } = this.#world;
    network.heal();
    network.loss = 0;
    network.duplication = 0;
    network.straggle = 0;
    network.delayMs = 5;
    for (const member of this.#cluster.members()) {
      member.slowness = 1;
      if (!member.alive) member.restart();
      if (member.paused) member.resume();
    }
  }

  #one(): void {
    const { random, trace, timeline } = this.#world;
    const kinds = [
      this.#partition,
      this.#partition,
      this.#heal,
      this.#weather,
      this.#crash,
      this.#crash,
      this.#restart,
      this.#restart,
      this.#pause,
      this.#slowDisk,
      this.#reconfigure,
      this.#reconfigure,
      this.#transfer,
      this.#gossip,
      this.#gossip,
      this.#campaign,
    ];
    const kind = random.pick(kinds);
    trace.add(`${timeline.nowMs.toFixed(3)} ${kind?.name}`);
    kind?.call(this);
  }

  #partition(): void {
    const { random, network } = this.#world;
    const ids = random.shuffle(this.#cluster.members().map((member) => member.id));
    const [one = '', two = ''] = ids;
    network.heal();
    const shape = random.below(6);
    const between = (left: readonly string[], right: readonly string[], both: boolean): void => {
      for (const a of left)
        for (const b of right) {
          network.cut(a, b);
          if (both) network.cut(b, a);
        }
    };
    const half = ids.slice(0, 1 + random.below(ids.length - 1));
    const rest = ids.filter((id) => !half.includes(id));
    if (shape === 0) between(half, rest, true);
    else if (shape === 1) between([one], ids.slice(1), true);
    // Asymmetric partition: the member can send but not receive, or vice versa.
    else if (shape === 2) between(ids.slice(1), [one], false);
    else if (shape === 3) between([one], ids.slice(1), false);
    // Two members cannot reach each other; all others reach both.
    else if (shape === 4) between([one], [two], random.chance(0.5));
    // Bridge: two sides are connected only through one member.
    else between(half.slice(1), rest, true);
  }

  #heal(): void {
    this.#world.network.heal();
  }

  #weather(): void {
    const { random, network } = this.#world;
    network.loss = random.pick([0, 0, 0.02, 0.1, 0.3]) ?? 0;
    network.duplication = random.pick([0, 0.05, 0.3]) ?? 0;
    network.straggle = random.pick([0, 0.01, 0.1]) ?? 0;
    network.delayMs = random.pick([2, 5, 15, 40]) ?? 5;
  }

  #crash(): void {
    const { random, timeline } = this.#world;
    const all = this.#cluster.members();
    const victims = random.chance(0.1) ? all : [random.pick(all)];
    for (const victim of victims) {
      if (!victim?.alive) continue;
      const wasLeader = victim.role === 'leader';
      victim.crash();
      // Gossip usually reports the crash.
      if (!wasLeader || !random.chance(0.7)) continue;
      for (const member of all)
        timeline.after(random.between(10, 60), () =>
          member.command((raft) => {
            raft.setPeerHints(all.map(({ id, applied, alive }) => ({ id, alive, lastIndex: applied, health: 0 })));
            raft.leaderConfirmedDead(victim.id);
          }),
        );
    }
  }

  #restart(): void {
    const { random } = this.#world;
    for (const member of this.#cluster.members()) {
      if (!member.alive && random.chance(0.6)) member.restart();
      else if (member.paused && random.chance(0.6)) member.resume();
    }
  }

  #pause(): void {
    const { random, timeline } = this.#world;
    const all = this.#cluster.members();
    const leader = all.find((member) => member.role === 'leader');
    const victim = random.chance(0.6) ? leader : random.pick(all);
    if (!victim?.alive || victim.paused) return;
    victim.pause();
    timeline.after(random.between(50, 800), () => {
      if (victim.paused) victim.resume();
    });
  }

  #slowDisk(): void {
    const { random } = this.#world;
    const member = random.pick(this.#cluster.members());
    if (member !== undefined) member.slowness = random.pick([1, 1, 10, 60]) ?? 1;
  }

  #reconfigure(): void {
    const { random } = this.#world;
    const leader = this.#cluster.members().find((member) => member.role === 'leader');
    const { voters, learners } = leader?.raft.status().conf ?? { voters: [], learners: [] };
    const steps: ConfStep[] = [];
    const named = new Set<string>();
    for (let count = random.chance(0.5) ? 1 : 2 + random.below(2); count > 0; count--) {
      const what = random.below(5);
      let step: ConfStep | undefined;
      if (what <= 1) {
        const id = voters.length < Math.min(5, MAX_VOTERS) ? this.#cluster.newcomer() : undefined;
        if (id !== undefined) step = { op: what === 0 ? 'addLearner' : 'addVoter', id };
      } else if (what === 2) {
        const id = random.pick(learners);
        if (id !== undefined) step = { op: 'addVoter', id };
      } else if (voters.length > 2) {
        const id = random.pick(voters);
        if (id !== undefined) step = { op: what === 3 ? 'remove' : 'addLearner', id };
      }
      if (step === undefined || named.has(step.id)) continue;
      named.add(step.id);
      steps.push(step);
    }
    if (steps.length > 0) leader?.command((raft) => raft.proposeConfChange({ steps }));
  }

  #transfer(): void {
    const { random } = this.#world;
    const all = this.#cluster.members();
    const to = random.pick(all)?.id ?? '';
    random.pick(all)?.command((raft) => raft.transferLeadership(to));
  }

  /** Sends gossip hints that may be late, partial and wrong: safety must not depend on them. */
  #gossip(): void {
    const { random } = this.#world;
    const all = this.#cluster.members();
    const about = random.pick(all)?.id ?? '';
    const lie = random.chance(0.5);
    for (const member of all) {
      if (random.chance(0.3)) continue;
      member.command((raft) => {
        if (lie) raft.leaderConfirmedDead(about);
        else raft.hintLeaderSeen(about, 5 + random.below(30));
      });
    }
  }

  #campaign(): void {
    this.#world.random.pick(this.#cluster.members())?.command((raft) => raft.campaign());
  }
}

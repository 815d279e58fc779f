import type { Writer } from '../../../src/wire/protobuf/protobuf.ts';
import type { Member } from './member.ts';
import { type Answer, call } from './rpc.ts';
import type { World } from './world.ts';

export interface Hosts {
  members(): readonly Member[];
  /** Creates a host on which the program has never run; undefined if there are enough hosts. */
  newcomer(): Member | undefined;
}

export interface FaultOptions {
  /** Whether members are added and removed. */
  readonly reconfigures: boolean;
}

/** Injects random faults one after another until it is stopped. */
export class Faults {
  readonly #world: World;
  readonly #hosts: Hosts;
  readonly #options: FaultOptions;
  #stopped = false;

  constructor(world: World, hosts: Hosts, options: FaultOptions) {
    this.#world = world;
    this.#options = options;
    this.#hosts = hosts;
  }

  start(): void {
    const { timeline, random } = this.#world;
    timeline.after(random.between(30, 500), () => {
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
    network.delayMs = 4;
    for (const member of this.#hosts.members()) {
      member.disk.slowness = 1;
      member.disk.full = false;
      member.resume();
      member.start();
    }
  }

  #one(): void {
    const { random, trace, timeline, network } = this.#world;
    const kinds = [
      this.#partition,
      this.#partition,
      this.#heal,
      this.#heal,
      this.#weather,
      this.#crash,
      this.#crash,
      this.#restart,
      this.#restart,
      this.#restart,
      this.#terminate,
      this.#pause,
      this.#slowDisk,
      this.#stuckDisk,
      this.#fullDisk,
      ...(this.#options.reconfigures ? [this.#reconfigure, this.#reconfigure] : []),
      this.#transfer,
      this.#compact,
      this.#compact,
      this.#setClock,
      () => network.breakOne(),
      () => network.breakOne(),
    ];
    const kind = random.pick(kinds);
    trace.add(`${timeline.nowMs.toFixed(3)} ${kind?.name}`);
    kind?.call(this);
  }

  #partition(): void {
    const { random, network } = this.#world;
    const names = random.shuffle(this.#hosts.members().map((member) => member.name));
    const [one = '', two = ''] = names;
    if (names.length < 2) return;
    network.heal();
    const between = (left: readonly string[], right: readonly string[], both: boolean): void => {
      for (const a of left)
        for (const b of right) {
          network.cut(a, b);
          if (both) network.cut(b, a);
        }
    };
    const half = names.slice(0, 1 + random.below(names.length - 1));
    const rest = names.filter((name) => !half.includes(name));
    const shape = random.below(7);
    if (shape === 0) between(half, rest, true);
    else if (shape === 1) between([one], names.slice(1), true);
    else if (shape === 2) between(names.slice(1), [one], false);
    else if (shape === 3) between([one], names.slice(1), false);
    else if (shape === 4) between([one], [two], random.chance(0.5));
    // Bridge: two sides are connected only through one member.
    else if (shape === 5) between(half.slice(1), rest, true);
    else between(names, names, true);
  }

  #heal(): void {
    this.#world.network.heal();
  }

  #weather(): void {
    const { random, network } = this.#world;
    network.loss = random.pick([0, 0, 0.02, 0.1, 0.3]) ?? 0;
    network.delayMs = random.pick([2, 4, 15, 60]) ?? 4;
  }

  #crash(): void {
    const { random } = this.#world;
    const all = this.#hosts.members();
    const victims = random.chance(0.15) ? all : [random.pick(all)];
    const silently = random.chance(0.4);
    for (const victim of victims) victim?.crash(silently);
  }

  #restart(): void {
    for (const member of this.#hosts.members()) {
      if (this.#world.random.chance(0.7)) {
        member.start();
        member.resume();
      }
    }
  }

  #terminate(): void {
    this.#world.random.pick(this.#hosts.members())?.stop();
  }

  #pause(): void {
    const { random, timeline } = this.#world;
    const victim = random.pick(this.#hosts.members());
    if (victim === undefined) return;
    victim.pause();
    timeline.after(random.between(100, 2500), () => victim.resume());
  }

  #slowDisk(): void {
    const { random } = this.#world;
    const member = random.pick(this.#hosts.members());
    if (member !== undefined) member.disk.slowness = random.pick([1, 1, 10, 60]) ?? 1;
  }

  #stuckDisk(): void {
    const { random, timeline } = this.#world;
    const member = random.pick(this.#hosts.members());
    if (member !== undefined) member.disk.stuckUntil = timeline.nowMs + random.between(500, 4000);
  }

  #fullDisk(): void {
    const { random, timeline, trace } = this.#world;
    const all = this.#hosts.members();
    const some = random.chance(0.3) ? all.filter(() => random.chance(0.7)) : [random.pick(all)];
    if (some.length > 1) trace.count('several disks full');
    for (const member of some) {
      if (member === undefined || member.gone) continue;
      member.disk.full = true;
      // The reserve is consumed when the journal is moved into the database, which is not reported to the simulation.
      if (random.chance(0.3)) member.disk.ballastUsed = true;
      timeline.after(random.between(300, 3000), () => {
        member.disk.full = false;
      });
    }
  }

  #setClock(): void {
    const { random } = this.#world;
    const { clock } = random.pick(this.#hosts.members()) ?? {};
    if (clock !== undefined) clock.skewMs = random.between(-1e8, 1e8);
  }

  #compact(): void {
    const { random, checkers } = this.#world;
    const member = random.pick(this.#hosts.members());
    const revision = Math.max(1, checkers.known - random.below(30));
    if (member !== undefined) this.#ask(member, 'KV/Compact', (out) => out.int(1, revision));
  }

  #transfer(): void {
    const { random } = this.#world;
    const to = random.pick(this.#hosts.members())?.id ?? '';
    if (to === '') return;
    for (const member of this.#hosts.members())
      this.#ask(member, 'Maintenance/MoveLeader', (out) => out.big(1, BigInt(`0x${to}`)));
  }

  #reconfigure(): void {
    const { random } = this.#world;
    const all = this.#hosts.members();
    const queried = random.pick(all);
    if (queried === undefined) return;
    const running = all.filter((member) => !member.gone);
    const what = random.below(6);
    if (what <= 1 || running.length <= 2) {
      const added = running.length < 6 ? this.#hosts.newcomer() : undefined;
      if (added === undefined) return;
      const learner = random.chance(0.6);
      this.#ask(
        queried,
        'Cluster/MemberAdd',
        (out) => out.string(1, added.url).bool(2, learner),
        (answer) => {
          // If the outcome of the addition is unknown, the new member keeps trying to join.
          if (answer.kind === 'failed' && answer.sure) added.gone = true;
          else {
            added.start();
            if (learner) this.#promote(added, 3);
          }
        },
      );
      return;
    }
    const target = random.pick(running);
    if (target === undefined || target.id === '') return;
    const id = BigInt(`0x${target.id}`);
    if (what <= 3) this.#ask(queried, 'Cluster/MemberPromote', (out) => out.big(1, id));
    else this.#ask(queried, 'Cluster/MemberRemove', (out) => out.big(1, id));
  }

  /** Requests the promotion repeatedly until it succeeds, as an operator would. */
  #promote(learner: Member, times: number): void {
    const { random, timeline } = this.#world;
    timeline.after(random.between(100, 1500), () => {
      const queried = random.pick(this.#hosts.members());
      if (this.#stopped || times === 0 || queried === undefined || learner.id === '') return;
      const id = BigInt(`0x${learner.id}`);
      this.#ask(
        queried,
        'Cluster/MemberPromote',
        (out) => out.big(1, id),
        (answer) => {
          if (answer.kind !== 'ok') this.#promote(learner, times - 1);
        },
      );
    });
  }

  #ask(member: Member, path: string, write: (out: Writer) => Writer, done: (answer: Answer) => void = () => {}): void {
    const { trace, timeline } = this.#world;
    call(this.#world, member, `/etcdserverpb.${path}`, write, { timeoutMs: 3000 }, (answer) => {
      const text = answer.kind === 'failed' ? answer.text : answer.kind;
      trace.add(`${timeline.nowMs.toFixed(3)} ${member.name} ${path}: ${text}`);
      trace.count(`${path}: ${answer.kind === 'ok' ? 'ok' : 'not'}`);
      done(answer);
    });
  }
}

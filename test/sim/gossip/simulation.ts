/**
 * Simulates a ring of real machines on a virtual network and clock. The seed determines everything: the same seed gives
 * the same trace, whose hash is in the result. The checks are separate from the run, so that they can be tested on runs
 * with a planted bug.
 */
import { Gossip, type GossipConfig, type GossipInput, lanConfig, type Work } from '../../../src/gossip/core/index.ts';
import type { GossipMessage, PeerAddress, RingState } from '../../../src/gossip/core/port.ts';
import { decodeMessage, encodeMessage } from '../../../src/gossip/memberlist/messages.ts';

export type Fault =
  | { readonly atMs: number; readonly kind: 'crash'; readonly node: number }
  | { readonly atMs: number; readonly kind: 'leave'; readonly node: number }
  /** The process is stopped (SIGSTOP, starved of CPU). Datagrams wait in its socket up to a limit. */
  | { readonly atMs: number; readonly kind: 'pause'; readonly node: number; readonly forMs: number }
  /** Members with the bit set in `side` cannot reach the other members. */
  | { readonly atMs: number; readonly kind: 'partition'; readonly side: number; readonly forMs: number };

export interface Scenario {
  readonly members: number;
  readonly durationMs: number;
  /** Share of datagrams that are lost and of those that are delivered twice. */
  readonly loss: number;
  readonly duplication: number;
  readonly delayMs: readonly [number, number];
  readonly faults: readonly Fault[];
  readonly config?: Partial<GossipConfig>;
  /** Modifies received messages to plant a bug. Undefined drops the message. */
  readonly hear?: (node: string, message: GossipMessage) => GossipMessage | undefined;
}

export interface Observation {
  readonly atMs: number;
  readonly by: number;
  readonly about: number;
  readonly kind: 'joined' | 'suspected' | 'recovered' | 'failed' | 'left';
}

export interface Run {
  readonly hash: string;
  readonly observations: readonly Observation[];
  /** Final state of the table of each running member: member states by member. */
  readonly beliefs: ReadonlyMap<number, ReadonlyMap<number, string>>;
  readonly datagrams: number;
}

/** Limit of datagrams in the socket of a stopped process. */
const SOCKET_BACKLOG = 200;
const OBSERVED = new Set<string>(['joined', 'suspected', 'recovered', 'failed', 'left']);

interface Node {
  readonly id: number;
  readonly name: string;
  readonly address: PeerAddress;
  readonly gossip: Gossip;
  up: boolean;
  pausedUntilMs: number;
  backlog: GossipInput[];
  tickAtMs: number;
}

/** Uniform in [0, 1) from a 32-bit seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 0x1_0000_0000;
  };
}

export function simulate(seed: number, scenario: Scenario): Run {
  const random = seeded(seed);
  const config: GossipConfig = { ...lanConfig, ...scenario.config };
  const queue = new Timeline();
  const nodes: Node[] = [];
  const byPort = new Map<number, Node>();
  const observations: Observation[] = [];
  const partitions: { side: number; untilMs: number }[] = [];
  let hash = 0x811c9dc5;
  let now = 0;
  let datagrams = 0;

  const trace = (text: string): void => {
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  };

  const connected = (a: Node, b: Node): boolean =>
    partitions.every(({ side, untilMs }) => now >= untilMs || ((side >> a.id) & 1) === ((side >> b.id) & 1));

  const delay = (): number => scenario.delayMs[0] + random() * (scenario.delayMs[1] - scenario.delayMs[0]);

  const perform = (node: Node, work: Work): void => {
    for (const packet of work.packets) {
      datagrams++;
      trace(`${now.toFixed(3)} ${node.id}>${packet.to.port} ${packet.parts.length}`);
      const target = byPort.get(packet.to.port);
      if (target === undefined || !connected(node, target) || random() < scenario.loss) continue;
      const copies = random() < scenario.duplication ? 2 : 1;
      for (let copy = 0; copy < copies; copy++)
        queue.add(now + delay(), () => {
          const messages = packet.parts
            .map((part) => decodeMessage(part))
            .filter((message) => message !== undefined)
            .map((message) => (scenario.hear === undefined ? message : scenario.hear(target.name, message)))
            .filter((message) => message !== undefined);
          deliver(target, { kind: 'packet', from: node.address, messages });
        });
    }
    for (const ping of work.streamPings) {
      const target = byPort.get(ping.to.port);
      const answered = target?.up === true && connected(node, target) && target.pausedUntilMs <= now;
      // A stream survives loss through retransmission, which takes time.
      const took = delay() * 3 * (random() < scenario.loss ? 10 : 1);
      if (answered && took < ping.timeoutMs)
        queue.add(now + took, () => deliver(node, { kind: 'stream-ping', seq: ping.seq, answered }));
    }
    for (const exchange of work.exchanges) {
      const target = byPort.get(exchange.to.port);
      if (target !== undefined) exchangeTables(node, target);
    }
    for (const event of work.events) {
      if (!('member' in event)) continue;
      const about = Number(event.member.name.slice(1));
      trace(`${now.toFixed(3)} ${node.id} ${event.kind} ${about}`);
      if (OBSERVED.has(event.kind) && about !== node.id)
        observations.push({ atMs: now, by: node.id, about, kind: event.kind as Observation['kind'] });
    }
    arm(node);
  };

  const exchangeTables = (from: Node, to: Node): void => {
    queue.add(now + delay() * 2, () => {
      if (!from.up || !to.up || to.pausedUntilMs > now || !connected(from, to)) return;
      const theirs = heardState(to, from.gossip.state(new Uint8Array(), false));
      const ours = heardState(from, to.gossip.state(new Uint8Array(), false));
      deliver(to, { kind: 'state', state: theirs });
      queue.add(now + delay(), () => deliver(from, { kind: 'state', state: ours }));
    });
  };

  /** Planted bugs modify tables in the same way as datagrams. */
  const heardState = (node: Node, state: RingState): RingState => {
    const hear = scenario.hear;
    if (hear === undefined) return state;
    const rows = state.rows.filter((row) => {
      const { name, incarnation } = row;
      const message: GossipMessage =
        row.state === 'alive'
          ? { kind: 'alive', incarnation, node: name, address: row.address, meta: row.meta, versions: row.versions }
          : { kind: row.state === 'left' ? 'dead' : 'suspect', incarnation, node: name, from: name };
      return hear(node.name, message) !== undefined;
    });
    return { ...state, rows };
  };

  const deliver = (node: Node, input: GossipInput): void => {
    if (!node.up) return;
    if (node.pausedUntilMs > now) {
      if (node.backlog.length < SOCKET_BACKLOG) node.backlog.push(input);
      return;
    }
    perform(node, node.gossip.step(input, now, random));
  };

  const arm = (node: Node): void => {
    const at = node.gossip.nextTickMs();
    if (!node.up || at === node.tickAtMs || !Number.isFinite(at)) return;
    node.tickAtMs = at;
    queue.add(Math.max(at, now), () => {
      if (!node.up || node.tickAtMs !== at || node.pausedUntilMs > now) return;
      node.tickAtMs = Number.NaN;
      perform(node, node.gossip.tick(now, random));
    });
  };

  const wake = (node: Node): void => {
    if (!node.up || node.pausedUntilMs > now) return;
    const backlog = node.backlog;
    node.backlog = [];
    // An event loop that wakes up runs due timers before it reads its sockets.
    node.tickAtMs = Number.NaN;
    perform(node, node.gossip.tick(now, random));
    for (const input of backlog) deliver(node, input);
  };

  for (let id = 0; id < scenario.members; id++) {
    const name = `n${id}`;
    const address = { ip: '10.0.0.1', port: 1000 + id };
    const gossip = new Gossip({ config, name, address, meta: new Uint8Array(40), encode: encodeMessage });
    const node: Node = { id, name, address, gossip, up: true, pausedUntilMs: 0, backlog: [], tickAtMs: Number.NaN };
    nodes.push(node);
    byPort.set(address.port, node);
    queue.add(random() * 200, () => {
      perform(node, gossip.start(now, random));
      const first = nodes[0];
      if (first !== undefined && first !== node) queue.add(now + 250, () => exchangeTables(node, first));
    });
  }
  for (const fault of scenario.faults)
    queue.add(fault.atMs, () => {
      trace(`${fault.atMs} ${fault.kind}`);
      if (fault.kind === 'partition') {
        partitions.push({ side: fault.side, untilMs: now + fault.forMs });
        return;
      }
      const node = nodes[fault.node];
      if (node === undefined || !node.up) return;
      if (fault.kind === 'crash') node.up = false;
      else if (fault.kind === 'leave') {
        perform(node, node.gossip.step({ kind: 'leave', token: 1 }, now, random));
        queue.add(now + 3000, () => {
          node.up = false;
        });
      } else {
        node.pausedUntilMs = Math.max(node.pausedUntilMs, now + fault.forMs);
        queue.add(node.pausedUntilMs, () => wake(node));
      }
    });

  for (;;) {
    const next = queue.take();
    if (next === undefined || next.atMs > scenario.durationMs) break;
    now = next.atMs;
    next.run();
  }

  const beliefs = new Map<number, ReadonlyMap<number, string>>();
  for (const node of nodes)
    if (node.up)
      beliefs.set(
        node.id,
        new Map(node.gossip.members().map((member) => [Number(member.name.slice(1)), member.state])),
      );
  return { hash: (hash >>> 0).toString(16), observations, beliefs, datagrams };
}

/**
 * Wrong states at the end of a run: running members must consider each other alive and all other members dead or
 * departed.
 */
export function disagreements(run: Run, scenario: Scenario): string[] {
  const wrong: string[] = [];
  for (const [by, beliefs] of run.beliefs)
    for (let about = 0; about < scenario.members; about++) {
      const state = beliefs.get(about) ?? 'unknown';
      const left = scenario.faults.some((fault) => fault.kind === 'leave' && fault.node === about);
      const crashed = scenario.faults.some((fault) => fault.kind === 'crash' && fault.node === about);
      const right = left
        ? state === 'left' || (crashed && state === 'dead')
        : crashed
          ? state === 'dead'
          : state === 'alive';
      if (!right) wrong.push(`n${by} takes n${about} for ${state}`);
    }
  return wrong;
}

/** Members that were declared failed although they were running and reachable. */
export function falsePositives(run: Run, scenario: Scenario): Observation[] {
  return run.observations.filter(
    (each) =>
      each.kind === 'failed' &&
      !scenario.faults.some(
        (fault) =>
          fault.kind === 'partition' ||
          ((fault.kind === 'crash' || fault.kind === 'leave') && fault.node === each.about && fault.atMs <= each.atMs),
      ),
  );
}

/** For each crash, the time in milliseconds until the last survivor detected it; infinite if one never did. */
export function detectionTimes(run: Run, scenario: Scenario): number[] {
  return scenario.faults
    .filter((fault) => fault.kind === 'crash')
    .map((fault) => {
      let slowest = 0;
      for (const by of run.beliefs.keys()) {
        const seen = run.observations.find(
          (each) => each.by === by && each.about === fault.node && each.kind === 'failed' && each.atMs >= fault.atMs,
        );
        slowest = Math.max(slowest, seen === undefined ? Number.POSITIVE_INFINITY : seen.atMs - fault.atMs);
      }
      return slowest;
    });
}

interface Moment {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

/** Binary heap by time, then by order of insertion. */
class Timeline {
  readonly #heap: Moment[] = [];
  #order = 0;

  add(atMs: number, run: () => void): void {
    const heap = this.#heap;
    let i = heap.length;
    const moment = { atMs, order: this.#order++, run };
    heap.push(moment);
    while (i > 0) {
      const up = (i - 1) >> 1;
      const parent = heap[up];
      if (parent === undefined || !before(moment, parent)) break;
      heap[i] = parent;
      i = up;
    }
    heap[i] = moment;
  }

  take(): Moment | undefined {
    const heap = this.#heap;
    const top = heap[0];
    const last = heap.pop();
    if (top === undefined || last === undefined || heap.length === 0) return top;
    let i = 0;
    for (;;) {
      let down = 2 * i + 1;
      const left = heap[down];
      if (left === undefined) break;
      const right = heap[down + 1];
      let child = left;
      if (right !== undefined && before(right, left)) {
        child = right;
        down++;
      }
      if (!before(child, last)) break;
      heap[i] = child;
      i = down;
    }
    heap[i] = last;
    return top;
  }
}

function before(a: Moment, b: Moment): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

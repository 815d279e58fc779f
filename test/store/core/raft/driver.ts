import { createRaft, emptyStorage, type Raft, RaftError } from '../../../../src/store/core/raft/index.ts';
import type {
  ConfOperation,
  ConfState,
  Entry,
  Message,
  RaftConfig,
  Ready,
  SnapshotMeta,
  StoredState,
} from '../../../../src/store/core/raft/types.ts';

export const defaults: Omit<RaftConfig, 'id'> = {
  electionTicks: 10,
  heartbeatTicks: 2,
  randomTicks: () => 0,
  forwardProposals: false,
  maxAppendBytes: 1 << 20,
  maxCommittedBytes: 1 << 20,
  maxInflightMessages: 64,
  maxInflightBytes: 1 << 20,
  maxUncommittedBytes: 1 << 20,
  maxCachedBytes: 1 << 20,
  maxPendingReads: 100,
};

const encoder = new TextEncoder();
const decoder = new TextDecoder();

interface Node {
  readonly id: string;
  readonly config: RaftConfig;
  raft: Raft;
  /** State on disk. */
  stored: StoredState;
  /** Readys taken but not written while the disk is held. */
  waiting: Ready[];
  diskHeld: boolean;
  down: boolean;
  conf: ConfState;
  applied: string[];
}

/**
 * Simulates the members of a cluster step by step. Messages wait until they are delivered, and every step is recorded
 * as a line. A scenario is a list of commands, one per line, each followed by its recorded effects; see `run`.
 */
export class Driver {
  readonly nodes = new Map<string, Node>();
  readonly #out: string[] = [];
  #messages: Message[] = [];
  readonly #cut = new Set<string>();
  #contexts = 0;

  add(id: string, voters: readonly string[], overrides: Partial<RaftConfig> = {}): void {
    // Earlier members get shorter timeouts, so that elections between equals have a winner.
    const patience = this.nodes.size;
    const config = { ...defaults, randomTicks: () => patience, ...overrides, id };
    const stored = emptyStorage(voters);
    this.nodes.set(id, {
      id,
      config,
      raft: createRaft(config, stored),
      stored,
      waiting: [],
      diskHeld: false,
      down: false,
      conf: stored.conf,
      applied: [],
    });
  }

  node(id: string): Node {
    const node = this.nodes.get(id);
    if (node === undefined) throw new Error(`there is no member ${id}`);
    return node;
  }

  raft(id: string): Raft {
    return this.node(id).raft;
  }

  /** Runs one command and returns its recorded effects. */
  run(command: string): string[] {
    const [verb = '', ...args] = command.trim().split(/\s+/);
    const first = this.#out.length;
    try {
      this.#command(verb, args);
      for (const id of this.nodes.keys()) this.#serve(id);
    } catch (error) {
      if (!(error instanceof RaftError)) throw error;
      this.#out.push(`refused ${error.code}: ${error.message}`);
    }
    return this.#out.splice(first);
  }

  #command(verb: string, args: readonly string[]): void {
    const [id = '', ...rest] = args;
    switch (verb) {
      // members ID... [key=value]...: the first voters, and settings of the machine.
      case 'members': {
        const voters = args.filter((each) => !each.includes('='));
        for (const voter of voters) this.add(voter, voters, settings(args));
        return;
      }
      // join ID: adds a member with an empty disk.
      case 'join':
        this.add(id, [], settings(rest));
        return;
      case 'tick':
        for (let i = 0; i < Number(rest[0] ?? 1); i++) {
          this.raft(id).tick();
          this.#serve(id);
        }
        return;
      case 'campaign':
        this.raft(id).campaign();
        return;
      case 'propose':
        this.raft(id).propose(rest.map((each) => encoder.encode(each)));
        return;
      // conf ID +a -b ~c: adds voter a, removes b, makes c a learner.
      case 'conf': {
        const operations: Record<string, ConfOperation> = { '+': 'addVoter', '-': 'remove', '~': 'addLearner' };
        const steps = rest.map((each) => ({ op: operations[each.charAt(0)] ?? 'remove', id: each.slice(1) }));
        this.raft(id).proposeConfChange({ steps });
        return;
      }
      case 'read':
        this.raft(id).readIndex(`r${this.#contexts++}`);
        return;
      case 'transfer':
        this.raft(id).transferLeadership(rest[0] ?? '');
        return;
      case 'dead':
        this.raft(id).leaderConfirmedDead(rest[0] ?? '');
        return;
      case 'seen':
        this.raft(id).hintLeaderSeen(rest[0] ?? '', Number(rest[1] ?? 10));
        return;
      case 'hints':
        for (const [member, { raft }] of this.nodes)
          if (member !== id)
            raft.setPeerHints(
              [...this.nodes.values()].map((node) => ({
                id: node.id,
                alive: node.id !== id,
                lastIndex: node.raft.status().lastIndex,
                health: 0,
              })),
            );
        return;
      case 'cut':
        for (const to of rest) this.#cut.add(`${id}>${to}`);
        return;
      // isolate ID: cuts the links to and from every other member.
      case 'isolate':
        for (const other of this.nodes.keys()) this.#cut.add(`${id}>${other}`).add(`${other}>${id}`);
        return;
      case 'heal':
        this.#cut.clear();
        return;
      case 'hold-disk':
        this.node(id).diskHeld = true;
        return;
      case 'release-disk':
        this.node(id).diskHeld = false;
        this.#flush(this.node(id));
        return;
      // crash ID: loses everything that was not written.
      case 'crash': {
        const node = this.node(id);
        node.waiting = [];
        node.down = true;
        return;
      }
      case 'restart': {
        const node = this.node(id);
        node.down = false;
        node.diskHeld = false;
        node.raft = createRaft(node.config, node.stored);
        return;
      }
      case 'compact':
        this.compact(id, Number(rest[0]));
        return;
      // deliver: delivers every message that waits now, once.
      case 'deliver':
        this.#deliver();
        return;
      case 'stabilize':
        this.stabilize();
        return;
      case 'drop':
        this.#out.push(`dropped ${this.#messages.length}`);
        this.#messages = [];
        return;
      case 'status':
        for (const node of this.nodes.values()) this.#out.push(status(node));
        return;
      case 'progress':
        for (const [member, progress] of this.raft(id).status().progress)
          this.#out.push(
            `${member} ${progress.state} match ${progress.match} next ${progress.next}${progress.paused ? ' paused' : ''}`,
          );
        return;
      default:
        throw new Error(`unknown command ${verb}`);
    }
  }

  compact(id: string, index: number): void {
    const node = this.node(id);
    node.raft.compact(index);
    const { entries } = node.stored;
    const last = entries.find((entry) => entry.index === index);
    if (last !== undefined)
      node.stored = {
        ...node.stored,
        base: { index, term: last.term },
        entries: entries.filter((entry) => entry.index > index),
      };
  }

  /** Delivers messages and performs work until no member has any left. */
  stabilize(): void {
    for (let rounds = 0; ; rounds++) {
      if (rounds > 1_000) throw new Error('this never comes to rest');
      for (const id of this.nodes.keys()) this.#serve(id);
      if (this.#messages.length === 0) return;
      this.#deliver();
    }
  }

  #deliver(): void {
    for (const message of this.#messages.splice(0)) {
      const target = this.nodes.get(message.to);
      if (target === undefined || target.down || this.#cut.has(`${message.from}>${message.to}`)) continue;
      this.#out.push(`${message.from}→${message.to} ${describe(message)}`);
      target.raft.step(message);
      this.#serve(message.to);
    }
  }

  #serve(id: string): void {
    const node = this.node(id);
    while (!node.down && node.raft.hasReady()) {
      const ready = node.raft.ready();
      if (ready.softState !== undefined)
        this.#out.push(
          `${id} is ${ready.softState.role} in term ${node.raft.status().term}, leader ${ready.softState.leader ?? '?'}`,
        );
      for (const entry of ready.committed) {
        this.#out.push(`${id} applies ${show(entry)}`);
        node.applied.push(show(entry));
      }
      if (ready.confState !== undefined) {
        node.conf = ready.confState;
        this.#out.push(`${id} has ${showConf(node.conf)}`);
      }
      for (const { context, index } of ready.readStates) this.#out.push(`${id} may read ${context} at ${index}`);
      for (const context of ready.abortedReads) this.#out.push(`${id} gives up reading ${context}`);
      for (const { from } of ready.entryReads) {
        this.#out.push(`${id} reads entries from ${from}`);
        node.raft.entriesRead(
          from,
          node.stored.entries.filter((entry) => entry.index >= from),
        );
      }
      for (const { to } of ready.snapshotsToSend) this.#snapshot(node, to);
      this.#messages.push(...ready.messages);
      node.waiting.push(ready);
      if (!node.diskHeld) this.#flush(node);
    }
  }

  /** Delivers a snapshot whose bytes arrive at once. */
  #snapshot(node: Node, to: string): void {
    const { applied } = node.raft.status();
    const index = applied;
    const term = node.stored.entries.find((entry) => entry.index === index)?.term ?? node.stored.base.term;
    const meta: SnapshotMeta = { index, term, conf: node.conf };
    this.#out.push(`${node.id} streams a snapshot of ${index} to ${to}`);
    node.raft.snapshotProgress(to, index);
    const message = node.raft.snapshotMessage(to, meta);
    if (message !== undefined) this.#messages.push(message);
    node.raft.snapshotDone(to, true);
  }

  #flush(node: Node): void {
    for (const ready of node.waiting.splice(0)) {
      node.stored = written(node.stored, ready, node.conf);
      this.#messages.push(...ready.messagesAfterPersist);
      node.raft.advance(ready);
    }
    if (node.raft.hasReady()) this.#serve(node.id);
  }
}

/** The disk state after a Ready. Applied entries count as durably applied. */
function written(stored: StoredState, ready: Ready, conf: ConfState): StoredState {
  const { snapshot, entries } = ready;
  const hardState = ready.hardState ?? stored.hardState;
  const applied = Math.max(stored.applied, ready.committed.at(-1)?.index ?? 0);
  let next: StoredState = { ...stored, hardState, applied, conf };
  if (snapshot !== undefined) {
    const { index, term } = snapshot;
    next = { ...next, base: { index, term }, applied: index, conf: snapshot.conf, entries: [] };
  }
  const first = entries[0];
  if (first !== undefined)
    next = { ...next, entries: [...next.entries.filter((entry) => entry.index < first.index), ...entries] };
  return next;
}

function settings(args: readonly string[]): Partial<RaftConfig> {
  const pairs = args.filter((each) => each.includes('=')).map((each) => each.split('=') as [string, string]);
  return Object.fromEntries(pairs.map(([key, value]) => [key, value === 'true' ? true : Number(value)]));
}

function show(entry: Entry): string {
  const what =
    entry.kind === 'data'
      ? decoder.decode(entry.data)
      : entry.kind === 'conf'
        ? `conf[${entry.change.steps.map(({ op, id }) => `${op} ${id}`).join(', ') || 'leave'}]`
        : 'noop';
  return `${entry.index}@${entry.term}:${what}`;
}

function showConf({ voters, outgoing, learners, learnersNext }: ConfState): string {
  const parts = [`voters ${voters.join(' ')}`];
  if (outgoing.length > 0) parts.push(`outgoing ${outgoing.join(' ')}`);
  if (learners.length > 0) parts.push(`learners ${learners.join(' ')}`);
  if (learnersNext.length > 0) parts.push(`learners to be ${learnersNext.join(' ')}`);
  return parts.join(', ');
}

function status({ id, raft, down }: Node): string {
  const { role, term, leader, commit, applied, firstIndex, lastIndex } = raft.status();
  return `${id} ${down ? 'down' : role} term ${term} leader ${leader ?? '?'} commit ${commit} applied ${applied} log ${firstIndex}..${lastIndex}`;
}

function describe(message: Message): string {
  const term = 'term' in message ? ` t${message.term}` : '';
  switch (message.type) {
    case 'append':
      return `append${term} after ${message.prevIndex}@${message.prevTerm} [${message.entries.map(show).join(' ')}] commit ${message.commit}${message.quiet ? ' quietly' : ''}`;
    case 'appendResp':
      return message.rejected
        ? `appendResp${term} rejects ${message.index}, at best ${message.hintIndex}@${message.hintTerm}`
        : `appendResp${term} has ${message.index}`;
    case 'preVote':
    case 'vote':
      return `${message.type}${term} log ${message.lastIndex}@${message.lastTerm}${message.leaderDead ? ' leader dead' : ''}`;
    case 'preVoteResp':
    case 'voteResp':
      return `${message.type}${term} ${message.granted ? 'yes' : 'no'}`;
    case 'heartbeat':
      return `heartbeat${term} commit ${message.commit} round ${message.round}`;
    case 'heartbeatResp':
      return `heartbeatResp${term} round ${message.round}`;
    case 'snapshot':
      return `snapshot${term} ${message.snapshot.index}@${message.snapshot.term}, ${showConf(message.snapshot.conf)}`;
    case 'readIndexResp':
      return `readIndexResp ${message.context} at ${message.index}`;
    case 'readIndex':
      return `readIndex ${message.context}`;
    case 'transfer':
      return `transfer to ${message.target}`;
    case 'timeoutNow':
      return `timeoutNow${term}`;
    case 'propose':
      return `propose ${message.data.map((each) => decoder.decode(each)).join(' ')}`;
  }
}

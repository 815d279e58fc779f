import { createRaft, emptyStorage, type Raft, RaftError } from '../../../src/store/core/raft/index.ts';
import type { ConfState, Entry, Message, RaftConfig, Ready, SnapshotMeta } from '../../../src/store/core/raft/types.ts';
import type { Bug } from './bugs.ts';
import type { Checkers } from './checkers.ts';
import { Disk } from './disk.ts';
import { type Command, decodeCommand, emptyKv, encodeCommand, Kv, type KvState } from './kv.ts';
import type { Network } from './network.ts';
import type { Random } from './random.ts';
import type { Timeline } from './timeline.ts';
import type { Trace } from './trace.ts';

/** Shared environment of the members of a simulation. */
export interface World {
  readonly random: Random;
  readonly timeline: Timeline;
  readonly network: Network;
  readonly trace: Trace;
  readonly checkers: Checkers;
  readonly bug: Bug | undefined;
  readonly tuning: Omit<RaftConfig, 'id' | 'randomTicks'>;
  member(id: string): Member | undefined;
}

/** `value`: the register before the operation. `refused`: certainly without effect. `unknown`: possibly with effect. */
export type Answer = { readonly kind: 'done'; readonly value: number } | { readonly kind: 'refused' | 'unknown' };
type Respond = (answer: Answer) => void;

interface Staged {
  readonly meta: SnapshotMeta;
  readonly state: KvState;
  chunks: number;
}

interface UnderWay {
  readonly ready: Ready;
  readonly snapshot: { readonly meta: SnapshotMeta; readonly state: KvState } | undefined;
  done: boolean;
}

const CHECKPOINT_EVERY = 16;
const TICK_MS = 10;
/**
 * A snapshot stream consists of this many chunks. It is aborted after this many unacknowledged transmissions of a
 * chunk.
 */
const CHUNKS = 4;
const MAX_SENDS = 12;

/** Shell of one machine that performs its work with simulated time, network and disk. */
export class Member {
  readonly id: string;
  readonly #world: World;
  #disk: Disk;
  #raft: Raft;
  #kv: Kv;
  #conf: ConfState;
  #applied = 0;
  #appliedTerm = 0;
  /** Last applied index reported to the machine. */
  #advanced = 0;
  #checkpointed = 0;
  #role = 'follower';
  /** Incremented by every crash, so that timers of earlier lives are ignored. */
  #life = 0;
  #contexts = 0;
  #underWay: UnderWay[] = [];
  alive = true;
  paused = false;
  #held: (() => void)[] = [];
  readonly #writes = new Map<number, { readonly term: number; readonly respond: Respond }>();
  readonly #reads = new Map<string, { readonly key: string; readonly respond: Respond }>();
  #ripe: { readonly index: number; readonly key: string; readonly respond: Respond }[] = [];
  readonly #staged = new Map<string, Staged>();
  readonly #streams = new Map<string, number>();

  constructor(id: string, voters: readonly string[], world: World) {
    this.id = id;
    this.#world = world;
    const stored = emptyStorage(voters);
    const { conf, base } = stored;
    this.#conf = conf;
    this.#appliedTerm = base.term;
    this.#applied = base.index;
    this.#advanced = base.index;
    this.#checkpointed = base.index;
    const first = { ...base, conf, state: emptyKv };
    this.#disk = new Disk(first, world.random, world.timeline, world.bug?.diskLies ?? false);
    this.#kv = new Kv(emptyKv);
    this.#raft = createRaft(this.#config(), stored);
    this.#scheduleTick(this.#life);
  }

  #config(): RaftConfig {
    return { ...this.#world.tuning, id: this.id, randomTicks: (below) => this.#world.random.below(below) };
  }

  get raft(): Raft {
    return this.#raft;
  }

  get applied(): number {
    return this.#applied;
  }

  get role(): string {
    return this.alive ? this.#role : 'down';
  }

  set slowness(factor: number) {
    this.#disk.slowness = factor;
  }

  digest(): string {
    return this.#kv.digest();
  }

  /** Clocks run at different and uneven speeds. */
  #scheduleTick(life: number): void {
    this.#world.timeline.after(TICK_MS * this.#world.random.between(0.7, 1.4), () => {
      if (life !== this.#life) return;
      // Ticks of a paused process are lost and not made up for.
      if (!this.paused) this.#do(() => this.#raft.tick());
      this.#scheduleTick(life);
    });
  }

  crash(): void {
    this.alive = false;
    this.paused = false;
    this.#held = [];
    this.#life++;
    this.#disk.crash();
    for (const { respond } of this.#writes.values()) respond({ kind: 'unknown' });
    for (const { respond } of this.#reads.values()) respond({ kind: 'unknown' });
    for (const { respond } of this.#ripe) respond({ kind: 'unknown' });
    this.#writes.clear();
    this.#reads.clear();
    this.#ripe = [];
    this.#underWay = [];
    this.#staged.clear();
    this.#streams.clear();
  }

  restart(): void {
    this.alive = true;
    this.#disk = this.#disk.reopened();
    const stored = this.#disk.view.stored(this.#world.random.below(6));
    const { index, term, conf, state } = this.#disk.view.checkpoint;
    this.#kv = new Kv(state);
    this.#conf = conf;
    this.#applied = index;
    this.#appliedTerm = term;
    this.#advanced = index;
    this.#checkpointed = index;
    this.#role = 'follower';
    this.#raft = createRaft(this.#config(), stored);
    this.#scheduleTick(this.#life);
    this.#pump();
  }

  /** Stops the process. Messages wait as in a socket's buffer. */
  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
    for (const run of this.#held.splice(0)) run();
  }

  /** Runs `run` now, or when the member is resumed. */
  #later(life: number, run: () => void): void {
    if (life !== this.#life || !this.alive) return;
    if (this.paused) this.#held.push(() => this.#later(life, run));
    else run();
  }

  /** Passes an input to the machine and performs the resulting work. */
  #do(input: () => void): void {
    input();
    this.#pump();
  }

  receive(message: Message): void {
    // The socket's buffer is limited.
    if (this.paused && this.#held.length > 500) return;
    this.#later(this.#life, () => {
      this.#world.trace.add(
        `${this.#world.timeline.nowMs.toFixed(3)} ${message.from}>${message.to} ${describe(message)}`,
      );
      this.#world.trace.count(message.type);
      if (message.type === 'appendResp' && message.rejected) this.#world.trace.count('rejected append');
      if (message.type === 'snapshot') {
        const staged = this.#staged.get(message.from);
        if (staged?.meta.index !== message.snapshot.index || staged.chunks < CHUNKS) return;
      }
      this.#do(() => this.#raft.step(message));
    });
  }

  /** Passes an input without a response to the machine. Rejections are ignored. */
  command(input: (raft: Raft) => void): void {
    this.#later(this.#life, () =>
      this.#do(() => {
        try {
          input(this.#raft);
        } catch (error) {
          if (!(error instanceof RaftError)) throw error;
        }
      }),
    );
  }

  submit(command: Command, respond: Respond): void {
    this.#later(this.#life, () => {
      const data = [encodeCommand(command)];
      this.#ask(respond, () => {
        const proposed = this.#raft.propose(data);
        if (proposed.kind === 'forwarded') respond({ kind: 'unknown' });
        else if (this.#world.bug?.earlyAnswers) respond({ kind: 'done', value: this.#kv.read(command.key) });
        else this.#writes.set(proposed.first, { term: proposed.term, respond });
      });
    });
  }

  read(key: string, respond: Respond): void {
    this.#later(this.#life, () => {
      if (this.#world.bug?.staleReads) {
        respond({ kind: 'done', value: this.#kv.read(key) });
        return;
      }
      const context = `${this.id}-${this.#life}-${this.#contexts++}`;
      this.#ask(respond, () => {
        this.#raft.readIndex(context);
        this.#reads.set(context, { key, respond });
      });
    });
  }

  #ask(respond: Respond, input: () => void): void {
    this.#do(() => {
      try {
        input();
      } catch (error) {
        if (!(error instanceof RaftError)) throw error;
        this.#world.trace.count(error.code);
        respond({ kind: 'refused' });
      }
    });
  }

  #pump(): void {
    const life = this.#life;
    while (life === this.#life && this.#raft.hasReady()) this.#serve(this.#raft.ready());
  }

  #serve(ready: Ready): void {
    const { checkers, trace } = this.#world;
    const life = this.#life;
    if (ready.softState !== undefined) {
      const { role, leader } = ready.softState;
      this.#role = role;
      trace.add(`${this.id} ${role} ${leader}`);
      trace.count(role);
      if (role === 'leader') checkers.elected(this.id, this.#raft.status().term, this.#disk.view);
    }
    this.#send(ready.messages);
    this.#apply(ready);
    for (const { context, index } of ready.readStates) {
      const read = this.#reads.get(context);
      this.#reads.delete(context);
      if (read !== undefined) this.#ripe.push({ ...read, index });
    }
    for (const context of ready.abortedReads) {
      trace.count('aborted read');
      this.#reads.get(context)?.respond({ kind: 'refused' });
      this.#reads.delete(context);
    }
    this.#answerReads();
    for (const { to } of ready.snapshotsToSend) this.#stream(to);
    for (const { from, maxBytes } of ready.entryReads) this.#readEntries(from, maxBytes);

    const { entries, hardState, snapshot: meta } = ready;
    const staged = meta && [...this.#staged.values()].find((each) => each.meta.index === meta.index);
    if (meta !== undefined && staged === undefined)
      throw new Error(`${this.id} installs a snapshot that it does not have`);
    const first = entries[0];
    const snapshot = meta && staged && { meta, state: staged.state };
    const write = { ready, snapshot, done: false };
    this.#underWay.push(write);
    this.#disk.write({ hardState, entries, snapshot }, ready.mustSync, () => {
      write.done = true;
      this.#later(life, () => this.#finish());
    });
    if (first !== undefined) checkers.appended(this.id, entries, this.#disk.view.term(first.index - 1));
  }

  /** Readys are completed in order, even if their writes complete out of order. */
  #finish(): void {
    while (this.#underWay[0]?.done) {
      const { ready, snapshot } = this.#underWay.shift() as UnderWay;
      if (snapshot !== undefined) this.#install(snapshot.meta, snapshot.state);
      this.#send(ready.messagesAfterPersist);
      this.#raft.advance(ready);
      this.#advanced = Math.max(this.#advanced, ready.committed.at(-1)?.index ?? 0);
      this.#checkpoint();
    }
    this.#pump();
  }

  #apply(ready: Ready): void {
    for (const original of ready.committed) {
      const entry = this.#world.bug?.apply?.(this.id, original) ?? original;
      this.#world.checkers.applied(this.id, entry, this.#applied);
      this.#applied = entry.index;
      this.#appliedTerm = entry.term;
      const result = entry.kind === 'data' ? this.#kv.apply(decodeCommand(entry.data)) : 0;
      const waiting = this.#writes.get(entry.index);
      if (waiting === undefined) continue;
      this.#writes.delete(entry.index);
      waiting.respond(waiting.term === entry.term ? { kind: 'done', value: result } : { kind: 'refused' });
    }
    if (ready.confState !== undefined) {
      this.#conf = ready.confState;
      this.#world.trace.count(this.#conf.outgoing.length > 0 ? 'joint configuration' : 'configuration');
    }
    if (ready.committed.length > 0) this.#world.trace.add(`${this.id} applied ${this.#applied}`);
  }

  #answerReads(): void {
    const waiting = this.#ripe;
    this.#ripe = [];
    for (const read of waiting) {
      if (read.index > this.#applied) this.#ripe.push(read);
      else read.respond({ kind: 'done', value: this.#kv.read(read.key) });
    }
  }

  #install(meta: SnapshotMeta, state: KvState): void {
    this.#kv = new Kv(state);
    this.#conf = meta.conf;
    this.#applied = meta.index;
    this.#appliedTerm = meta.term;
    this.#advanced = meta.index;
    this.#checkpointed = meta.index;
    this.#world.trace.add(`${this.id} installed ${meta.index}`);
    this.#world.trace.count('installed snapshot');
    this.#answerReads();
  }

  /** Periodically stores the state machine and discards most of the log before it. */
  #checkpoint(): void {
    if (this.#applied !== this.#advanced || this.#applied < this.#checkpointed + CHECKPOINT_EVERY) return;
    this.#checkpointed = this.#applied;
    const compact = this.#applied - this.#world.random.below(CHECKPOINT_EVERY);
    const checkpoint = { index: this.#applied, term: this.#appliedTerm, conf: this.#conf, state: this.#kv.state() };
    this.#raft.compact(compact);
    this.#disk.write({ checkpoint, compact }, false, () => {});
  }

  #readEntries(from: number, maxBytes: number): void {
    const life = this.#life;
    this.#world.timeline.after(this.#world.random.between(0.2, 3), () =>
      this.#later(life, () => {
        this.#world.trace.count('entries read');
        const { base, log } = this.#disk.view;
        const count = 1 + (maxBytes >> 8);
        const entries: Entry[] =
          from <= base.index ? [] : log.slice(from - base.index - 1, from - base.index - 1 + count);
        this.#do(() => this.#raft.entriesRead(from, entries));
      }),
    );
  }

  #send(messages: readonly Message[]): void {
    const { network, bug, timeline } = this.#world;
    for (const original of messages) {
      const message = bug?.message === undefined ? original : bug.message(original, timeline.nowMs);
      if (message !== undefined)
        network.send(this.id, message.to, () => this.#world.member(message.to)?.receive(message));
    }
  }

  /** Streams the current state to `to` in chunks. A chunk that is not acknowledged is sent again. */
  #stream(to: string): void {
    const meta: SnapshotMeta = { index: this.#applied, term: this.#appliedTerm, conf: this.#conf };
    this.#streams.set(to, meta.index);
    this.#sendChunk(this.#life, to, { meta, state: this.#kv.state(), chunks: 0 }, 0);
  }

  #sendChunk(life: number, to: string, snapshot: Staged, sends: number): void {
    if (life !== this.#life || this.#streams.get(to) !== snapshot.meta.index) return;
    if (sends >= MAX_SENDS) {
      this.#streams.delete(to);
      this.#world.trace.count('failed snapshot');
      this.#do(() => this.#raft.snapshotDone(to, false));
      return;
    }
    const { network, timeline } = this.#world;
    const chunk = snapshot.chunks;
    network.send(this.id, to, () =>
      this.#world.member(to)?.receiveChunk(this.id, snapshot, chunk, (have) => {
        network.send(to, this.id, () => this.#later(life, () => this.#chunkDone(life, to, snapshot, have)));
      }),
    );
    timeline.after(30, () =>
      this.#later(life, () => {
        if (snapshot.chunks === chunk) this.#sendChunk(life, to, snapshot, sends + 1);
      }),
    );
  }

  #chunkDone(life: number, to: string, snapshot: Staged, have: number): void {
    if (have <= snapshot.chunks || this.#streams.get(to) !== snapshot.meta.index) return;
    snapshot.chunks = have;
    this.#do(() => this.#raft.snapshotProgress(to, snapshot.meta.index));
    if (have < CHUNKS) {
      this.#sendChunk(life, to, snapshot, 0);
      return;
    }
    this.#streams.delete(to);
    const message = this.#raft.snapshotMessage(to, snapshot.meta);
    if (message !== undefined) this.#send([message]);
    this.#do(() => this.#raft.snapshotDone(to, true));
  }

  receiveChunk(from: string, snapshot: Staged, chunk: number, acknowledge: (have: number) => void): void {
    this.#later(this.#life, () => {
      const { meta, state } = snapshot;
      let staged = this.#staged.get(from);
      if (staged?.meta.index !== meta.index) {
        staged = { meta, state, chunks: 0 };
        this.#staged.set(from, staged);
      }
      if (chunk <= staged.chunks) staged.chunks = Math.max(staged.chunks, chunk + 1);
      acknowledge(staged.chunks);
    });
  }
}

function describe(message: Message): string {
  const { type } = message;
  if (type === 'append')
    return `append ${message.term} ${message.prevIndex}+${message.entries.length} ${message.commit}`;
  if (type === 'appendResp') return `appendResp ${message.term} ${message.index} ${message.rejected}`;
  return 'term' in message ? `${type} ${message.term}` : type;
}

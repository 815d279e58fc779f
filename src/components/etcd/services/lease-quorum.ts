/**
 * What is left of leases is not in the log: a write to disk for every keep-alive would be too much. So that a keep-alive that was acknowledged survives its
 * leader all the same, a quorum is told of it first, and whoever leads next asks a quorum before it lets any lease end: the two have a member in common.
 */
import { Reader, Writer } from '../../../api/etcd/wire.ts';
import type { Clock } from '../../../base/clock.ts';
import { CodedError } from '../../../base/errors.ts';
import type { NodeId } from '../../../core/raft/index.ts';
import { jointVote } from '../../../core/raft/quorum.ts';
import type { Engine } from '../replication/engine.ts';
import { decodeLeaseNews, type LeaseNews, writeLeaseNews } from '../replication/peer-protocol.ts';

export interface LeaseQuorumDeps {
  readonly engine: Engine;
  readonly clock: Clock;
  /** Asks every other member; those who agree are heard of, with what they say. */
  readonly askAll: (message: Uint8Array, agreed: (by: NodeId, body: Uint8Array) => void) => void;
}

interface Batch {
  readonly ids: Set<bigint>;
  readonly told: Promise<void>;
}

/** Keep-alives that come together are told together. */
const BATCH_MS = 2;
const RETRY_MS = 100;
const NEWS = 2;

export class LeaseQuorum {
  readonly #deps: LeaseQuorumDeps;
  #batch: Batch | undefined;

  constructor(deps: LeaseQuorumDeps) {
    this.#deps = deps;
  }

  /** Resolves when a quorum knows that lease `id` has been renewed here. Throws CodedError 'leader-failed'. */
  renewed(id: bigint): Promise<void> {
    const { engine, clock } = this.#deps;
    if (engine.replica.alone) return Promise.resolve();
    if (this.#batch === undefined) {
      const ids = new Set<bigint>();
      const told = new Promise<void>((resolve) => clock.setTimer(BATCH_MS, resolve)).then(() => {
        this.#batch = undefined;
        return this.#agree(encode(engine.replica.term, this.remaining(ids), false), () => {});
      });
      this.#batch = { ids, told };
    }
    this.#batch.ids.add(id);
    return this.#batch.told;
  }

  /** What is left of some leases, or of all. */
  remaining(ids: Iterable<bigint> = this.#deps.engine.machine.leases.ids()): LeaseNews {
    const { engine, clock } = this.#deps;
    const now = clock.monotonicMs();
    const news: Array<LeaseNews[number]> = [];
    for (const id of ids) {
      const lease = engine.machine.leases.get(id);
      if (lease !== undefined) news.push({ id, remainingMs: Math.max(1, Math.ceil(lease.expiresAtMs - now)) });
    }
    return news;
  }

  /** Takes over what a quorum knows. False when leadership is gone before that. */
  async learn(): Promise<boolean> {
    const { engine, clock } = this.#deps;
    const { replica } = engine;
    const { term } = replica;
    while (engine.leads && replica.term === term) {
      try {
        await this.#agree(encode(term, [], true), (body) => this.#extend(decode(body).news));
        return true;
      } catch (error) {
        if (!(error instanceof CodedError)) throw error;
        await new Promise<void>((resolve) => clock.setTimer(RETRY_MS, resolve));
      }
    }
    return false;
  }

  /** What this member says to the leader of its term; undefined to anybody else. Throws WireError. */
  answer(message: Uint8Array): Uint8Array | undefined {
    const { engine, clock } = this.#deps;
    const { term, news, asks } = decode(message);
    if (term !== engine.replica.term || engine.replica.leads) return undefined;
    const now = clock.monotonicMs();
    for (const { id, remainingMs } of news) engine.machine.leases.setRemaining(id, remainingMs, now);
    return encode(term, asks ? this.remaining() : [], false);
  }

  /** Who has been told later knows better; what is less was told earlier. */
  #extend(news: LeaseNews): void {
    const { leases } = this.#deps.engine.machine;
    const now = this.#deps.clock.monotonicMs();
    for (const { id, remainingMs } of news) leases.prolong(id, remainingMs, now);
  }

  /** Resolves when a quorum of voters, this member among them, agrees in this term. */
  #agree(message: Uint8Array, heard: (body: Uint8Array) => void): Promise<void> {
    const { clock, askAll, engine } = this.#deps;
    const { replica } = engine;
    const { term } = replica;
    const agreed = new Map<NodeId, boolean>([[replica.id, true]]);
    return new Promise((resolve, reject) => {
      const timer = clock.setTimer(replica.electionMs, () =>
        reject(new CodedError('leader-failed', 'no quorum answers about leases')),
      );
      const count = (): void => {
        const { voters, outgoing } = replica.conf;
        if (replica.term !== term || jointVote(new Set(voters), new Set(outgoing), agreed) !== 'won') return;
        timer.cancel();
        resolve();
      };
      askAll(message, (by, body) => {
        heard(body);
        agreed.set(by, true);
        count();
      });
      count();
    });
  }
}

function encode(term: number, news: LeaseNews, asks: boolean): Buffer {
  const out = new Writer(32 + news.length * 16).int(1, term);
  return writeLeaseNews(out, NEWS, news).bool(3, asks).finish();
}

function decode(bytes: Uint8Array): { readonly term: number; readonly news: LeaseNews; readonly asks: boolean } {
  const reader = new Reader(bytes);
  const news: Array<LeaseNews[number]> = [];
  let term = 0;
  let asks = false;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) term = reader.int();
    else if (field === NEWS) news.push(decodeLeaseNews(reader.bytes()));
    else if (field === 3) asks = reader.bool();
    else reader.skip();
  }
  return { term, news, asks };
}

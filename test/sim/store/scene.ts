import assert from 'node:assert/strict';
import { writePutRequest } from '../../../src/store/core/messages/kv.ts';
import type { Writer } from '../../../src/wire/protobuf/protobuf.ts';
import { Random } from '../raft/random.ts';
import { Timeline } from '../raft/timeline.ts';
import { Trace } from '../raft/trace.ts';
import { Checkers } from './checkers.ts';
import { Member, type Tuning } from './member.ts';
import { Network } from './network.ts';
import { leaveTo } from './quorum-loss.ts';
import { type Answer, call, keepAlive } from './rpc.ts';
import type { World } from './world.ts';

export const BOUNDS = { maxAppendBytes: 1 << 20, maxCachedBytes: 1 << 20, maxUncommittedBytes: 400, keepEntries: 100 };
export const ELECTED_MS = 3_000;
const STEP_MS = 0.1;

/** A store cluster for scripted scenarios, without random faults. */
export class Scene implements AsyncDisposable {
  readonly members: Member[] = [];
  readonly #world: World;
  readonly #tuning: Tuning;

  readonly network: Network;

  constructor(founders: number, tuning: Partial<Tuning> = {}) {
    this.#tuning = { cacheBytes: 1 << 20, bounds: BOUNDS, ...tuning };
    const network: Network = new Network(() => this.#world);
    this.network = network;
    this.#world = {
      random: new Random(founders),
      timeline: new Timeline(),
      trace: new Trace(false),
      network,
      checkers: new Checkers(),
      bug: undefined,
    };
    for (let i = 1; i <= founders; i++)
      this.#host(() => ({ members: this.members.slice(0, founders), existing: false }));
    for (const member of this.members) member.start();
  }

  /** Number of occurrences of a traced event. */
  count(what: string): number {
    return this.#world.trace.seen.get(what) ?? 0;
  }

  get nowMs(): number {
    return this.#world.timeline.nowMs;
  }

  /** Creates a host on which the program has never run. */
  newcomer(): Member {
    return this.#host(() => ({ members: this.members, existing: true }));
  }

  #host(initial: ConstructorParameters<typeof Member>[3]): Member {
    const name = `n${this.members.length + 1}`;
    const member = new Member(name, this.#world, this.#tuning, initial, false);
    this.members.push(member);
    return member;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { life } of this.members) life?.end();
    await this.#settled();
  }

  #settled(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  async pass(ms: number): Promise<void> {
    await this.#passUntil(this.nowMs + ms);
  }

  async #passUntil(time: number): Promise<void> {
    while (this.#world.timeline.step(time)) await this.#settled();
  }

  /**
   * Cuts the power of all members and makes `survivor` a single-member cluster. The data of the other members is lost.
   */
  async leaveTo(survivor: Member): Promise<void> {
    await leaveTo(
      this.#world,
      this.members,
      () => [survivor],
      (time) => this.#passUntil(time),
    );
  }

  /** Waits in simulated time until `is` returns true. */
  async until(is: () => boolean, mostMs = 10_000): Promise<void> {
    const { timeline } = this.#world;
    for (const end = timeline.nowMs + mostMs; !is(); ) {
      assert.ok(timeline.nowMs < end, `in vain for ${mostMs} ms: ${is}`);
      await this.pass(STEP_MS);
    }
  }

  /** Sends a request without waiting and calls `done` with the response. */
  send(
    member: Member,
    path: string,
    write: (out: Writer) => Writer,
    done: (answer: Answer) => void,
    how: { readonly relaxed?: boolean; readonly user?: string } = {},
  ): void {
    call(this.#world, member, `/etcdserverpb.${path}`, write, { timeoutMs: 1_000, ...how }, done);
  }

  async ask(
    member: Member,
    path: string,
    write: (out: Writer) => Writer,
    how: Parameters<Scene['send']>[4] = {},
  ): Promise<Answer> {
    let answer: Answer | undefined;
    const done = (got: Answer): void => {
      answer = got;
    };
    this.send(member, path, write, done, how);
    await this.until(() => answer !== undefined);
    return answer as unknown as Answer;
  }

  async put(member: Member, value: string, relaxed = false): Promise<Answer> {
    const write = (out: Writer): Writer => writePutRequest(out, { key: 'k', value: Buffer.from(value) });
    return this.ask(member, 'KV/Put', write, { relaxed });
  }

  /** Renews a lease and returns its remaining TTL in seconds. */
  async renew(member: Member, lease: bigint): Promise<number | undefined> {
    let left: number | undefined;
    let over = false;
    keepAlive(this.#world, member, lease, 1_000, (ttl) => {
      left = ttl;
      over = true;
    });
    await this.until(() => over);
    return left;
  }
}

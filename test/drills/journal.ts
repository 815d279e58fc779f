/** Clients that record acknowledged writes and compare them with the final data. */

import assert from 'node:assert/strict';
import { storeRevision } from '../../src/base/brand.ts';
import type { Store } from '../../src/store/port.ts';
import { clock, connect, eventually, type Member, sleep } from './processes.ts';

interface Outcome {
  /** Acknowledged revision; undefined if the outcome is unknown. */
  readonly revision: number | undefined;
}

export interface JournalSummary {
  readonly acknowledged: number;
  readonly unknown: number;
  /** Longest time without an acknowledged write. */
  readonly longestGapMs: number;
}

const PREFIX = 'journal/';
const END = 'journal0';

/**
 * Writers that create their own keys one after the other, each guarded by its absence, and a watch on all keys from the
 * first revision. Every acknowledged key must exist once at the acknowledged revision; revisions of a writer increase;
 * the watch reports every existing key once, in order.
 */
export class Journal {
  readonly #members: readonly Member[];
  readonly #outcomes = new Map<string, Outcome>();
  readonly #seen = new Map<string, number>();
  readonly #problems: string[] = [];
  readonly #watcher: Store;
  readonly #writers: Promise<void>[] = [];
  #last = 0;
  #lastAt = performance.now();
  #longestGapMs = 0;
  #stopped = false;

  constructor(members: readonly Member[], writers: number, pauseMs: number) {
    this.#members = members;
    this.#watcher = connect(members);
    this.#watcher.watch(PREFIX, END, storeRevision(1), {
      events: (events) => {
        for (const { type, kv } of events) this.#event(type, kv.key, kv.modRevision);
      },
      progress: () => {},
      closed: (error) => this.#problems.push(`the watch ended: ${error.message}`),
    });
    for (let i = 0; i < writers; i += 1) this.#writers.push(this.#write(i, pauseMs));
  }

  /** Number of acknowledged writes. */
  get acknowledged(): number {
    let count = 0;
    for (const { revision } of this.#outcomes.values()) if (revision !== undefined) count += 1;
    return count;
  }

  #event(type: string, key: string, revision: number): void {
    if (type !== 'put') this.#problems.push(`${key} was deleted at ${revision}`);
    if (revision < this.#last) this.#problems.push(`the watch went back from ${this.#last} to ${revision}`);
    if (this.#seen.has(key)) this.#problems.push(`${key} was seen at ${this.#seen.get(key)} and at ${revision}`);
    this.#last = revision;
    this.#seen.set(key, revision);
  }

  async #write(writer: number, pauseMs: number): Promise<void> {
    // Each writer starts with another member.
    const order = this.#members.map((_, i) => this.#members[(i + writer) % this.#members.length] as Member);
    const store = connect(order, 3000);
    let before = 0;
    for (let i = 0; !this.#stopped; i += 1) {
      const key = `${PREFIX}${writer}/${String(i).padStart(7, '0')}`;
      try {
        const result = await store.commit({
          guards: [{ key, modRevision: 0 }],
          puts: [{ key, value: Buffer.from(String(i)) }],
        });
        if (!result.committed) this.#problems.push(`${key}, never written before, was there`);
        else {
          if (result.revision <= before) this.#problems.push(`${key}: ${result.revision} after ${before}`);
          before = result.revision;
          this.#acknowledged(key, result.revision);
        }
      } catch {
        this.#outcomes.set(key, { revision: undefined });
      }
      await sleep(pauseMs);
    }
    await store.close();
  }

  #acknowledged(key: string, revision: number): void {
    const now = performance.now();
    this.#longestGapMs = Math.max(this.#longestGapMs, now - this.#lastAt);
    this.#lastAt = now;
    this.#outcomes.set(key, { revision });
  }

  /** Stops writing and compares. All members must be running. */
  async finish(): Promise<JournalSummary> {
    this.#stopped = true;
    await Promise.all(this.#writers);
    const store = connect(this.#members);
    const stored = await eventually('an answer', 30_000, () => store.range(PREFIX, END));
    const there = new Map(stored.kvs.map((kv) => [kv.key, kv]));
    let unknown = 0;
    for (const [key, { revision }] of this.#outcomes) {
      const kv = there.get(key);
      if (revision === undefined) unknown += 1;
      else if (kv === undefined) this.#problems.push(`${key}, acknowledged at ${revision}, is lost`);
      else if (kv.modRevision !== revision)
        this.#problems.push(`${key}, acknowledged at ${revision}, is at ${kv.modRevision}`);
    }
    for (const { key, createRevision, modRevision } of there.values()) {
      if (createRevision !== modRevision) this.#problems.push(`${key} was written twice`);
      if (!this.#outcomes.has(key)) this.#problems.push(`${key} was never written`);
    }
    await eventually('a complete watch', 30_000, async () => (this.#seen.size >= there.size ? true : undefined)).catch(
      () => this.#problems.push(`the watch saw ${this.#seen.size} of ${there.size}`),
    );
    for (const [key, revision] of this.#seen) {
      if (there.get(key)?.modRevision !== revision)
        this.#problems.push(`the watch saw ${key} at ${revision}, it is at ${there.get(key)?.modRevision}`);
    }
    await store.close();
    await this.#watcher.close();
    assert.deepEqual(this.#problems.slice(0, 20), []);
    return {
      acknowledged: this.#outcomes.size - unknown,
      unknown,
      longestGapMs: Math.round(this.#longestGapMs),
    };
  }
}

/** Time from `begin` until a write succeeds again; `members` are tried in turn. */
export async function untilWritable(members: readonly Member[], begin: number): Promise<number> {
  const clients = members.map((member) => member.connect(5000));
  try {
    return await eventually('a write', 30_000, async () => {
      const tries = clients.map((client) =>
        client.commit({ guards: [], puts: [{ key: 'resumed', value: Buffer.from(String(clock.nowMs())) }] }),
      );
      await Promise.any(tries);
      return performance.now() - begin;
    });
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return Math.round(sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? 0);
}

import {
  decodeWatchResponse,
  type WatchResponse,
  type WireEvent,
  writeWatchCreate,
  writeWatchProgress,
} from '../../../src/store/core/messages/watch.ts';
import { RpcCode, type RpcService, type StreamHandler } from '../../../src/wire/grpc/port.ts';
import { Writer } from '../../../src/wire/protobuf/protobuf.ts';
import { canonical, type Shown, shown, Violation } from './checkers.ts';
import type { Life } from './process.ts';
import type { World } from './world.ts';

interface Segment {
  readonly from: number;
  to: number;
  /** Received events by revision. */
  readonly seen: Map<number, string>;
}

/** Range and filters of a watch. */
export interface Wanted {
  readonly key: string;
  readonly end: string;
  readonly noPut?: boolean;
  readonly noDelete?: boolean;
  readonly prevKv: boolean;
}

/** Upper bound of the bytes before the events. */
const HEAD_BYTES = 60;

export const EVERYTHING: Wanted = { key: '\0', end: '\0', prevKv: true };

/**
 * A client that watches all or some keys, with or without filters, and checks etcd's guarantees: events arrive in
 * order, once, in whole revisions and without gaps, starting at the requested revision, and none at or before a
 * progress report follows it. It resumes after the last received revision.
 */
export class Watcher {
  /** First revision that was not received yet. */
  next = 1;
  readonly name: string;
  readonly #world: World;
  readonly #wanted: Wanted;
  readonly #segments: Segment[] = [];
  #handler: StreamHandler | undefined;
  #life: Life | undefined;
  #service: RpcService | undefined;
  #epoch = 0;
  #slow = false;
  #answers = 0;
  readonly #fragmentBytes: number | undefined;
  /** Events of an incomplete response. */
  #fragments: WireEvent[] = [];

  /** @param fragmentBytes Enables fragments with at most this size. */
  constructor(world: World, name: string, wanted: Wanted, fragmentBytes?: number) {
    this.#world = world;
    this.name = name;
    this.#wanted = wanted;
    this.#fragmentBytes = fragmentBytes;
  }

  get isOpen(): boolean {
    const isListening = this.#service !== undefined && !this.#world.network.closed.has(this.#service);
    return isListening && this.#handler !== undefined && (this.#life?.alive ?? false);
  }

  /**
   * Watches at `service` from `next` on. `carry` delivers a response to the client; `again` is called after a
   * compaction beyond `next`.
   */
  open(service: RpcService, life: Life, carry: (deliver: () => void) => void, again: () => void): void {
    this.#epoch += 1;
    const epoch = this.#epoch;
    this.#fragments = [];
    this.#life = life;
    this.#service = service;
    const open = service.stream('/etcdserverpb.Watch/Watch');
    if (open === undefined) throw new Error('no watch is served');
    const from = this.next;
    this.#segments.push({ from, to: from - 1, seen: new Map() });
    const handler: StreamHandler = open({
      metadata: () => undefined,
      peerCommonName: () => 'root',
      pause: () => {},
      resume: () => {},
      send: (...parts) => {
        for (const answer of this.#sent(Buffer.concat(parts))) {
          const response = decodeWatchResponse(answer);
          this.#checkSize(response, answer.length);
          carry(() => {
            if (epoch === this.#epoch) this.#heard(response, again);
          });
        }
        return !this.#slow;
      },
      end: (code, text) => {
        // The file is damaged, and the program sends no further response.
        if (code === RpcCode.dataLoss) {
          if (epoch === this.#epoch) this.#handler = undefined;
          return;
        }
        throw new Violation('no surprise', `${this.name}: a watch ended unexpectedly: ${text}`);
      },
    });
    this.#handler = handler;
    const { bug } = this.#world;
    const wanted = bug?.watching?.(this.#wanted) ?? this.#wanted;
    handler.message(
      writeWatchCreate(new Writer(64), {
        ...wanted,
        startRevision: from,
        fragment: this.#fragmentBytes !== undefined,
      }).finish(),
    );
  }

  #checkSize({ events, fragment }: WatchResponse, length: number): void {
    if (this.#fragmentBytes === undefined) {
      if (fragment) throw new Violation('watch', `${this.name}: a fragment was sent without a request for fragments`);
    } else if (events.length > 1 && length > this.#fragmentBytes + HEAD_BYTES)
      throw new Violation('watch', `${this.name}: a response has ${length} bytes; it should have been fragmented`);
  }

  #sent(answer: Buffer): readonly Buffer[] {
    const { bug } = this.#world;
    if (bug?.watched === undefined || decodeWatchResponse(answer).events.length === 0) return [answer];
    this.#answers += 1;
    return bug.watched(answer, this.#answers);
  }

  /** Simulates a broken connection. */
  close(): void {
    this.#epoch += 1;
    const handler = this.#handler;
    this.#handler = undefined;
    if (handler !== undefined) this.#life?.run(() => handler.closed());
  }

  /** Starts from the beginning, because the store was replaced. */
  startOver(): void {
    this.close();
    this.next = 1;
    this.#segments.length = 0;
  }

  slow(): void {
    this.#slow = true;
  }

  fast(): void {
    if (!this.#slow) return;
    this.#slow = false;
    const handler = this.#handler;
    if (handler !== undefined) this.#life?.run(() => handler.drained());
  }

  askProgress(): void {
    const handler = this.#handler;
    if (handler !== undefined) this.#life?.run(() => handler.message(writeWatchProgress(new Writer(8)).finish()));
  }

  #heard(response: WatchResponse, again: () => void): void {
    const { checkers, trace } = this.#world;
    const segment = this.#segments.at(-1) as Segment;
    if (response.fragment) {
      trace.count('fragment');
      this.#fragments.push(...response.events);
      return;
    }
    const all = this.#fragments.length === 0 ? response.events : [...this.#fragments, ...response.events];
    this.#fragments = [];
    if (response.canceled) {
      if (response.compactRevision <= this.next)
        throw new Violation(
          'watch',
          `${this.name}: the watch from ${this.next} was rejected, but only ${response.compactRevision} is compacted`,
        );
      this.#world.trace.count('watch overtaken by compaction');
      this.next = response.compactRevision;
      this.close();
      again();
      return;
    }
    if (response.created) return;
    if (all.length === 0) {
      // After a progress report no event at or before its revision is outstanding.
      this.next = Math.max(this.next, response.revision + 1);
      segment.to = this.next - 1;
      checkers.note(response.revision);
      return;
    }
    for (const [revision, events] of byRevision(all)) {
      if (revision < this.next)
        throw new Violation('watch', `${this.name}: revision ${revision} was sent instead of ${this.next}`);
      if (this.#wanted === EVERYTHING) checkers.show(this.name, revision, events);
      else checkers.note(revision);
      segment.seen.set(revision, canonical(events));
      this.next = revision + 1;
      segment.to = revision;
    }
    if (response.revision < this.next - 1)
      throw new Violation(
        'watch',
        `${this.name}: the header has revision ${response.revision}, and the events have ${this.next - 1}`,
      );
    this.#checkPrevious(all);
  }

  #checkPrevious(events: readonly WireEvent[]): void {
    for (const { kv, previous, type } of events) {
      const existed = type === 1 || kv.version > 1;
      // The previous value may be compacted, but if present it must be correct.
      if (previous === undefined) continue;
      if (!this.#wanted.prevKv)
        throw new Violation('watch', `${this.name}: a previous value of ${kv.key} was sent without a request for it`);
      if (!existed || previous.modRevision >= kv.modRevision)
        throw new Violation(
          'watch',
          `${this.name}: the previous value of ${kv.key} at ${kv.modRevision} is newer, or of a key that did not exist`,
        );
      const was = this.#world.checkers.history.get(previous.modRevision)?.findLast((event) => event.key === kv.key);
      if (was !== undefined && was.value !== previous.value.toString('latin1'))
        throw new Violation(
          'watch',
          `${this.name}: the previous value of ${kv.key} at ${kv.modRevision} differs from the stored one`,
        );
    }
  }

  /** Final check: no event is missing, and none is outside of the watched range. */
  check(): void {
    const { checkers } = this.#world;
    const all = [...checkers.history].sort(([a], [b]) => a - b);
    for (const { from, to, seen } of this.#segments)
      for (const [revision, events] of all) {
        if (revision < from || revision > to) continue;
        const due = canonical(events.filter((event) => this.#wants(event)));
        const heard = seen.get(revision) ?? '';
        if (heard === due) continue;
        throw new Violation(
          'watch',
          heard === ''
            ? `${this.name}: revision ${revision} is missing between ${from} and ${to}`
            : `${this.name}: revision ${revision} was sent as ${heard} instead of ${due}`,
        );
      }
  }

  #wants({ key, deleted }: Shown): boolean {
    const wanted = this.#wanted;
    if (wanted === EVERYTHING) return true;
    return key >= wanted.key && key < wanted.end && !(deleted ? wanted.noDelete : wanted.noPut);
  }
}

function byRevision(events: readonly WireEvent[]): Map<number, Shown[]> {
  const found = new Map<number, Shown[]>();
  for (const event of events) {
    const same = found.get(event.kv.modRevision);
    if (same === undefined) found.set(event.kv.modRevision, [shown(event)]);
    else same.push(shown(event));
  }
  return found;
}

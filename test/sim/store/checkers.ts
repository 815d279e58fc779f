import { decodeProposal } from '../../../src/store/core/auth/command.ts';
import { EventType, encodedValue, splitEvents } from '../../../src/store/core/messages/event.ts';
import type { WireEvent } from '../../../src/store/core/messages/watch.ts';
import type { Message } from '../../../src/store/core/raft/types.ts';
import { EntryKind, type StoredEntry } from '../../../src/store/disk/port.ts';
import { LogLevel } from '../../../src/store/replication/maintenance/log-level.ts';
import { decodeCommand } from '../../../src/store/replication/peers/entry-codec.ts';
import { Violation as BrokenPromise } from '../outcome.ts';
import type { StoreImage } from './store-image.ts';

export type CheckerName =
  | 'election safety'
  | 'log matching'
  | 'state machine safety'
  | 'durability'
  | 'linearizability'
  | 'revisions'
  | 'watch'
  | 'lease'
  | 'alarm'
  | 'users'
  | 'tokens'
  | 'builds'
  | 'permissions'
  | 'quota'
  | 'lock'
  | 'election'
  | 'observer'
  | 'recovery'
  | 'rebuild'
  | 'reinstated'
  | 'liveness'
  | 'no surprise';

/** A guarantee of raft or etcd was violated. */
export class Violation extends BrokenPromise<CheckerName> {}

export interface Shown {
  readonly key: string;
  readonly deleted: boolean;
  readonly create: number;
  readonly version: number;
  readonly value: string;
  readonly lease: bigint;
}

export function shown({ type, kv }: WireEvent): Shown {
  const { key, createRevision: create, version, value, lease } = kv;
  return { key, deleted: type === 1, create, version, value: value.toString('latin1'), lease };
}

function stored({ body }: StoredEntry): Shown[] {
  return splitEvents(body).map(({ type, key, createRevision: create, version, lease, kv }) => {
    const deleted = type === EventType.delete;
    return { key, deleted, create, version, value: deleted ? '' : encodedValue(kv).toString('latin1'), lease };
  });
}

export function canonical(events: readonly Shown[]): string {
  return events.map((e) => `${e.key}=${e.deleted ? '-' : `${e.value}@${e.create}#${e.version}~${e.lease}`}`).join();
}

/** Checks invariants with a view of all members at once and of everything that was ever visible to a client. */
export class Checkers {
  /** Events of each revision as they were first visible to a client. */
  readonly history = new Map<number, readonly Shown[]>();
  readonly #text = new Map<number, string>();
  readonly #leaders = new Map<number, string>();
  readonly #entries = new Map<string, { readonly text: string; readonly before: number }>();
  /** Relaxed writes of a single member that were visible and did not survive. */
  readonly lost = new Map<number, string>();
  readonly #losses: Array<{ readonly kept: number; readonly setAside: number; readonly durable: boolean }> = [];
  /** Highest revision that any client has received. */
  known = 0;
  onShown: (revision: number, events: readonly Shown[]) => void = () => {};

  /** Time after which writes must be rejected because of an alarm; undefined if they may succeed. */
  alarmSince: number | undefined;

  /** Records the success of a write that adds data and was sent at `askedMs`. */
  wrote(what: string, requestedMs: number): void {
    if (this.alarmSince !== undefined && requestedMs > this.alarmSince)
      throw new Violation('alarm', `${what} succeeded although the quota is used up`);
  }

  note(revision: number): void {
    if (revision > this.known) this.known = revision;
  }

  /** Records that a client has received `events` as revision `revision`. */
  show(who: string, revision: number, events: readonly Shown[]): void {
    const text = canonical(events);
    const known = this.#text.get(revision);
    if (known === undefined) {
      const lost = this.lost.get(revision);
      // The response was in flight when the power failed.
      if (lost === text) return;
      if (lost !== undefined)
        throw new Violation('revisions', `${who} uses revision ${revision} again, which was assigned before and lost`);
      this.#text.set(revision, text);
      this.history.set(revision, events);
      this.note(revision);
      this.onShown(revision, events);
    } else if (known !== text)
      throw new Violation(
        'state machine safety',
        `${who} has ${text} at revision ${revision}, and other members have ${known}`,
      );
  }

  /** IDs of members whose data was set aside. No acknowledgement is valid under these IDs any more. */
  readonly #retired = new Map<string, number>();
  /** Time since which there is no voter, because the only voter has lost its data. */
  deadSince: number | undefined;
  /** The only voter, while its data is about to be lost. */
  soleVoter: string | undefined;

  /** Whether acknowledgements under an ID count: the member votes, or the other members know it. */
  counts: (id: string) => boolean = () => true;

  isRetired(id: string): boolean {
    return this.#retired.has(id);
  }

  /** Records that the data of a member was set aside. Returns false if it had already been set aside. */
  putAside(id: string, nowMs: number): boolean {
    const isFirst = !this.#retired.has(id);
    if (this.counts(id)) this.#retired.set(id, nowMs);
    if (id === this.soleVoter) this.deadSince = nowMs;
    return isFirst;
  }

  /** Records a response that requires a leader, for a request sent at `askedMs`. */
  served(what: string, requestedMs: number): void {
    if (this.deadSince !== undefined && requestedMs > this.deadSince)
      throw new Violation('reinstated', `${what} was answered although the only voter lost its data`);
  }

  /**
   * Records that a single-member store was restored from `snapshot`. Later changes are lost, and revisions continue
   * after `revision`.
   */
  wentBack(snapshot: StoreImage, revision: number): void {
    this.alarmSince = undefined;
    const kept = snapshot.reaches;
    // Changes that were written but never visible are still in the store, and no watch will report them.
    for (const row of snapshot.rows) {
      const events = stored(row);
      if (events.length > 0 && !this.history.has(row.revision)) this.show('the snapshot', row.revision, events);
    }
    // All earlier revisions count as compacted: watches will not receive any that they have not received by now.
    const shown = Math.max(0, ...this.history.keys());
    this.#losses.push({ kept: Math.min(kept, shown), setAside: revision - 1, durable: true });
    this.#forget(kept);
    // No other member has the abandoned log.
    this.#leaders.clear();
    this.#entries.clear();
  }

  /** Whether a row equals its revision as it was visible. Parts of it may be compacted. */
  isShown(row: StoredEntry): boolean {
    const there = canonical(stored(row)).split(',');
    const events = this.#text.get(row.revision)?.split(',') ?? [];
    return there.every((event) => events.includes(event));
  }

  /**
   * Records that the operator has given up the members with revisions above `kept`. The same revisions may be allocated
   * again for other changes.
   */
  abandoned(kept: number): void {
    this.#losses.push({ kept, setAside: Number.POSITIVE_INFINITY, durable: true });
    // The call also covers responses whose changes have not been visible to any watch yet.
    this.onLoss();
    this.#forget(kept);
    this.lost.clear();
    this.#losses.length = 0;
    this.known = kept;
    this.alarmSince = undefined;
    this.#leaders.clear();
    this.#entries.clear();
  }

  /** Called before relaxed writes are removed from the history. */
  onLoss: () => void = () => {};

  /**
   * Records a power failure of a member. `kept` is the last revision on any disk. If it was a single member, later
   * relaxed writes may be lost, but durable ones may not. `setAside`: last revision that it may have allocated without
   * writing it first.
   */
  powerLost(kept: number, setAside: number): void {
    if (setAside > kept) this.#losses.push({ kept, setAside, durable: false });
    for (const [revision, events] of this.history)
      if (revision > kept && events.some((event) => !event.value.startsWith('relaxed')))
        throw new Violation('durability', `revision ${revision} was acknowledged with full durability and is lost`);
    this.#forget(kept);
  }

  #forget(kept: number): void {
    const behind = [...this.history.keys()].filter((revision) => revision > kept);
    if (behind.length > 0) this.onLoss();
    for (const revision of behind) {
      this.history.delete(revision);
      this.lost.set(revision, this.#text.get(revision) ?? '');
      this.#text.delete(revision);
    }
  }

  /** Whether a write acknowledged at `revision` may have been lost. */
  mayBeLost(revision: number, relaxed: boolean): boolean {
    if (relaxed && this.lost.has(revision)) return true;
    return this.#losses.some(
      ({ kept, setAside, durable }) => kept < revision && revision <= setAside && (relaxed || durable),
    );
  }

  /** Election safety: a member that appends or claims to be leader must be the only one in its term. */
  sent(message: Message, openedMs: number): void {
    const promises =
      (message.type === 'voteResp' && message.granted) || (message.type === 'appendResp' && !message.rejected);
    // Earlier acknowledgements may still be in flight on a connection from before.
    if (promises && openedMs > (this.#retired.get(message.from) ?? Number.POSITIVE_INFINITY))
      throw new Violation('rebuild', `${message.from} sent ${message.type} while it was being rebuilt`);
    if (message.type !== 'append' && message.type !== 'heartbeat') return;
    const { from, term } = message;
    const leader = this.#leaders.get(term);
    if (leader === undefined) this.#leaders.set(term, from);
    else if (leader !== from) throw new Violation('election safety', `${leader} and ${from} lead in term ${term}`);
  }

  /** Checks that no member receives an entry kind that its build does not support. */
  understood(name: string, entries: readonly StoredEntry[], level: number): void {
    for (const entry of entries)
      if (levelOf(entry) > level)
        throw new Violation(
          'builds',
          `${name} supports level ${level} and received entry ${entry.index} of level ${levelOf(entry)}`,
        );
  }

  /** Log matching: entries with the same index and term are equal, and so are all entries before them. */
  appended(name: string, entries: readonly StoredEntry[], image: StoreImage): void {
    const first = entries[0];
    if (first === undefined) return;
    let before = termAt(image, first.index - 1);
    for (const entry of entries) {
      const key = `${entry.index}@${entry.term}`;
      const text = `${entry.kind}/${entry.revision}/${entry.lease}/${Buffer.from(entry.body).toString('latin1')}`;
      const known = this.#entries.get(key);
      if (known === undefined) this.#entries.set(key, { text, before });
      else if (known.text !== text || known.before !== before)
        throw new Violation('log matching', `entry ${key} of ${name} differs from the entry of other members`);
      before = entry.term;
    }
  }
}

function levelOf({ kind, body }: StoredEntry): number {
  const command = kind === EntryKind.command ? decodeCommand(body) : undefined;
  if (command?.type !== 'auth') return LogLevel.beginning;
  return decodeProposal(command.command).command.kind === 'token-issue' ? LogLevel.tokens : LogLevel.beginning;
}

function termAt(image: StoreImage, index: number): number {
  if (index <= image.base.index) return index === image.base.index ? image.base.term : -1;
  const found = image.rows.findLast((row) => row.index === index) ?? image.others.findLast((e) => e.index === index);
  return found?.term ?? -1;
}

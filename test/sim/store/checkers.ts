import { EventType, encodedValue, splitEvents } from '../../../src/api/etcd/event.ts';
import type { WireEvent } from '../../../src/api/etcd/watch.ts';
import { EntryKind, type StoredEntry } from '../../../src/components/etcd/port.ts';
import { decodeCommand } from '../../../src/components/etcd/replication/entry-codec.ts';
import { LogLevel } from '../../../src/components/etcd/replication/log-level.ts';
import { decodeProposal } from '../../../src/core/etcdauth/command.ts';
import type { Message } from '../../../src/core/raft/types.ts';
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

/** A promise of raft's or of etcd's has been broken. */
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

/** Sees every member at once, as no member can; and what has ever been shown to anybody. */
export class Checkers {
  /** What each revision was, as whoever showed it first showed it. */
  readonly history = new Map<number, readonly Shown[]>();
  readonly #text = new Map<number, string>();
  readonly #leaders = new Map<number, string>();
  readonly #entries = new Map<string, { readonly text: string; readonly before: number }>();
  /** Relaxed writes of a member alone that were shown and did not survive. */
  readonly lost = new Map<number, string>();
  readonly #losses: Array<{ readonly kept: number; readonly setAside: number; readonly durable: boolean }> = [];
  /** The highest revision that anybody has been told of. */
  known = 0;
  onShown: (revision: number, events: readonly Shown[]) => void = () => {};

  /** Since when everybody may count on writes being refused; undefined: they may go through. */
  alarmSince: number | undefined;

  /** A write that adds something, asked at `askedMs`, has gone through. */
  wrote(what: string, askedMs: number): void {
    if (this.alarmSince !== undefined && askedMs > this.alarmSince)
      throw new Violation('alarm', `${what} goes through though the quota is used up`);
  }

  note(revision: number): void {
    if (revision > this.known) this.known = revision;
  }

  /** Somebody has been shown `events` as revision `revision`. */
  show(who: string, revision: number, events: readonly Shown[]): void {
    const text = canonical(events);
    const known = this.#text.get(revision);
    if (known === undefined) {
      const lost = this.lost.get(revision);
      // It was under way to somebody when the power went.
      if (lost === text) return;
      if (lost !== undefined)
        throw new Violation('revisions', `${who} shows revision ${revision}, which was given out before and lost`);
      this.#text.set(revision, text);
      this.history.set(revision, events);
      this.note(revision);
      this.onShown(revision, events);
    } else if (known !== text)
      throw new Violation('state machine safety', `${who} has ${text} at ${revision}, others ${known}`);
  }

  /** Ids under which nothing may be promised any more: what they had promised was put aside. */
  readonly #retired = new Map<string, number>();
  /** Since when nobody has a vote: whoever had the only one has lost its data. */
  deadSince: number | undefined;
  /** Whoever has the only vote, when its data are about to be lost. */
  soleVoter: string | undefined;

  /** Whether anybody may count on what was promised under an id: it votes, or the others know whose it is. */
  counts: (id: string) => boolean = () => true;

  isRetired(id: string): boolean {
    return this.#retired.has(id);
  }

  /** False if it had been before. */
  putAside(id: string, nowMs: number): boolean {
    const isFirst = !this.#retired.has(id);
    if (this.counts(id)) this.#retired.set(id, nowMs);
    if (id === this.soleVoter) this.deadSince = nowMs;
    return isFirst;
  }

  /** Something that only a store with a leader can answer was asked at `askedMs` and answered. */
  served(what: string, askedMs: number): void {
    if (this.deadSince !== undefined && askedMs > this.deadSince)
      throw new Violation('reinstated', `${what} is answered though the data of the only voter are lost`);
  }

  /** A store that is alone has gone back to `snapshot`: what came after it is lost, and it goes on behind `revision`. */
  wentBack(snapshot: StoreImage, revision: number): void {
    this.alarmSince = undefined;
    const kept = snapshot.reaches;
    // What was written and had been shown to nobody is there all the same, and no watch will tell of it.
    for (const row of snapshot.rows) {
      const events = stored(row);
      if (events.length > 0 && !this.history.has(row.revision)) this.show('the snapshot', row.revision, events);
    }
    // Everything before counts as compacted: what no watch has been told by now, none will be.
    const shown = Math.max(0, ...this.history.keys());
    this.#losses.push({ kept: Math.min(kept, shown), setAside: revision - 1, durable: true });
    this.#forget(kept);
    // Nobody else has the log that is given up.
    this.#leaders.clear();
    this.#entries.clear();
  }

  /** Whether a row is what was shown as its revision; some of it may be compacted away. */
  isShown(row: StoredEntry): boolean {
    const there = canonical(stored(row)).split(',');
    const events = this.#text.get(row.revision)?.split(',') ?? [];
    return there.every((event) => events.includes(event));
  }

  /** People have given up whoever had what is behind `kept`; the same revisions may be given out again, for something else. */
  abandoned(kept: number): void {
    this.#losses.push({ kept, setAside: Number.POSITIVE_INFINITY, durable: true });
    // Also what was answered and that nobody has been shown yet.
    this.onLoss();
    this.#forget(kept);
    this.lost.clear();
    this.#losses.length = 0;
    this.known = kept;
    this.alarmSince = undefined;
    this.#leaders.clear();
    this.#entries.clear();
  }

  /** Called before relaxed writes are forgotten. */
  onLoss: () => void = () => {};

  /**
   * A member has lost its power, and `kept` is the last revision on any disk: if it was alone, relaxed writes behind that may be lost, durable ones not.
   * `setAside`: up to here it may have given revisions out without writing them first.
   */
  powerLost(kept: number, setAside: number): void {
    if (setAside > kept) this.#losses.push({ kept, setAside, durable: false });
    for (const [revision, events] of this.history)
      if (revision > kept && events.some((event) => !event.value.startsWith('relaxed')))
        throw new Violation('durability', `revision ${revision} was shown, is not relaxed, and is lost`);
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

  /** Whether a write that was acknowledged at `revision` may be gone. */
  mayBeLost(revision: number, relaxed: boolean): boolean {
    if (relaxed && this.lost.has(revision)) return true;
    return this.#losses.some(
      ({ kept, setAside, durable }) => kept < revision && revision <= setAside && (relaxed || durable),
    );
  }

  /** Election safety: whoever appends or says that it leads is the only one in its term. */
  sent(message: Message, openedMs: number): void {
    const promises =
      (message.type === 'voteResp' && message.granted) || (message.type === 'appendResp' && !message.rejected);
    // What was promised before may still be under way, on a connection of before.
    if (promises && openedMs > (this.#retired.get(message.from) ?? Number.POSITIVE_INFINITY))
      throw new Violation('rebuild', `${message.from} promises something: ${message.type}`);
    if (message.type !== 'append' && message.type !== 'heartbeat') return;
    const { from, term } = message;
    const leader = this.#leaders.get(term);
    if (leader === undefined) this.#leaders.set(term, from);
    else if (leader !== from) throw new Violation('election safety', `${leader} and ${from} lead in term ${term}`);
  }

  /** Nobody is told what its build does not know. */
  understood(name: string, entries: readonly StoredEntry[], level: number): void {
    for (const entry of entries)
      if (levelOf(entry) > level)
        throw new Violation(
          'builds',
          `${name} is of level ${level} and gets entry ${entry.index} of ${levelOf(entry)}`,
        );
  }

  /** Log matching: entries of the same index and term are the same, and what is before them too. */
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
        throw new Violation('log matching', `${name} has another ${key} than others`);
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

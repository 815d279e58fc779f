import type { RecentEvent, SerfMessage, SerfQuery, SerfResponse, SerfState } from './port.ts';

/**
 * Number of events, and of queries, whose identities are kept, so that each message is forwarded and reported only
 * once.
 */
const REMEMBERED = 512;
/** Maximum number of events, and of their payload bytes, that a table exchange sends and accepts. */
const REPEATED = 64;
const REPEATED_BYTES = 64 * 1024;
/** Lamport times from this value on are rejected, because larger numbers are not exact. */
const MAX_LTIME = 2 ** 52;
/**
 * Maximum difference by which a Lamport time may exceed the current one. A correct ring never reaches it. A forged time
 * far in the future would make all later messages look stale.
 */
const MAX_LTIME_JUMP = 2 ** 32;

/** Work that follows from a Serf message. */
export interface IntentWork {
  /** Whether the message is new and must be forwarded unchanged. */
  readonly rebroadcast: boolean;
  /** Announcement of a member that it leaves (`leaving`) or stays. */
  readonly intent?: { readonly node: string; readonly leaving: boolean };
  /** Join message to encode and broadcast. It refutes a forged or outdated leave of this member. */
  readonly reply?: Extract<SerfMessage, { kind: 'join' }>;
  readonly event?: RecentEvent;
  /** Query that was received for the first time. */
  readonly query?: SerfQuery;
  readonly response?: SerfResponse;
}

const NOTHING: IntentWork = { rebroadcast: false };

/**
 * The Serf layer, by which stock agents distinguish a leave from a failure. It handles join and leave intents with
 * Lamport times, and events that are forwarded once. It performs no I/O.
 */
export class SerfIntents {
  readonly #self: string;
  readonly #maxMembers: number;
  /** Lamport time of the newest intent per member. */
  readonly #statusTimes = new Map<string, number>();
  readonly #left = new Set<string>();
  readonly #seenEvents = new SeenMessages();
  readonly #seenQueries = new SeenMessages();
  /** Recent events, oldest first. */
  readonly #recent: RecentEvent[] = [];
  #recentBytes = 0;
  #clock = 1;
  #eventClock = 1;
  /** Events before this Lamport time are older than the membership of this host and are ignored. */
  #eventFloor = 0;
  #queryClock = 1;
  #leaving = false;

  constructor(self: string, maxMembers: number) {
    this.#self = self;
    this.#maxMembers = maxMembers;
  }

  /** Returns the join intent to broadcast after joining. */
  join(): Extract<SerfMessage, { kind: 'join' }> {
    this.#leaving = false;
    const ltime = this.#advance();
    this.#statusTimes.set(this.#self, ltime);
    return { kind: 'join', ltime, node: this.#self };
  }

  /** Returns the leave intent to broadcast before leaving. */
  leave(): Extract<SerfMessage, { kind: 'leave' }> {
    this.#leaving = true;
    const ltime = this.#advance();
    this.#statusTimes.set(this.#self, ltime);
    return { kind: 'leave', ltime, node: this.#self, prune: false };
  }

  userEvent(name: string, payload: Uint8Array, coalesce: boolean): Extract<SerfMessage, { kind: 'user-event' }> {
    const ltime = this.#eventClock++;
    this.#isNew({ ltime, name, payload });
    return { kind: 'user-event', ltime, name, payload, coalesce };
  }

  /** Assigns the next Lamport time to a query of this member. */
  query(question: Omit<SerfQuery, 'ltime'>): SerfQuery {
    const ltime = this.#queryClock++;
    this.#seenQueries.add(`${ltime} ${question.id}`, ltime);
    return { ...question, ltime };
  }

  receive(message: SerfMessage): IntentWork {
    switch (message.kind) {
      case 'join':
      case 'leave':
        return this.#intent(message.kind === 'leave', message.node, message.ltime);
      case 'user-event': {
        const { ltime, name, payload } = message;
        const event = { ltime, name, payload };
        return this.#isNew(event) ? { rebroadcast: true, event } : NOTHING;
      }
      case 'query': {
        const { ltime, id, noBroadcast } = message;
        if (!plausible(ltime, this.#queryClock) || forgotten(ltime, this.#queryClock)) return NOTHING;
        this.#queryClock = Math.max(this.#queryClock, ltime + 1);
        if (!this.#seenQueries.add(`${ltime} ${id}`, ltime)) return NOTHING;
        return { rebroadcast: !noBroadcast, query: message };
      }
      case 'query-response':
        return { rebroadcast: false, response: message };
      case 'other':
        return NOTHING;
    }
  }

  /** Returns this member's Serf state for a table exchange. */
  state(): SerfState {
    return {
      ltime: this.#clock,
      statusTimes: this.#statusTimes,
      leftMembers: [...this.#left],
      eventTime: this.#eventClock,
      events: this.#recent,
      queryTime: this.#queryClock,
    };
  }

  /**
   * Merges the other side's Serf state after a table exchange. Returns one entry per new intent or event, which must
   * not be rebroadcast. `joining`: whether this member joins the ring by the exchange; then earlier events of the ring
   * are ignored, as with Serf's `ignoreOld`.
   */
  merge(state: SerfState, joining: boolean): IntentWork[] {
    if (state.ltime > 0) this.#witness(state.ltime - 1);
    if (plausible(state.eventTime, this.#eventClock)) this.#eventClock = Math.max(this.#eventClock, state.eventTime);
    if (plausible(state.queryTime, this.#queryClock)) this.#queryClock = Math.max(this.#queryClock, state.queryTime);
    const left = new Set(state.leftMembers);
    const works: IntentWork[] = [];
    for (const [node, ltime] of state.statusTimes) {
      const work = this.#intent(left.has(node), node, ltime);
      if (work.intent !== undefined || work.reply !== undefined) works.push(work);
    }
    if (joining && plausible(state.eventTime, 0)) this.#eventFloor = Math.max(this.#eventFloor, state.eventTime);
    for (const event of newest(state.events)) if (this.#isNew(event)) works.push({ rebroadcast: false, event });
    return works;
  }

  /** Deletes the state of a member that was removed from the table. */
  forget(node: string): void {
    this.#statusTimes.delete(node);
    this.#left.delete(node);
  }

  #intent(leaving: boolean, node: string, ltime: number): IntentWork {
    if (!this.#witness(ltime)) return NOTHING;
    const known = this.#statusTimes.get(node);
    if (known !== undefined ? ltime <= known : this.#statusTimes.size >= this.#maxMembers) return NOTHING;
    if (node === this.#self) {
      this.#statusTimes.set(node, ltime);
      // A leave intent about a member that stays is forged or from its earlier run. The join intent in the reply
      // refutes it.
      return leaving && !this.#leaving ? { rebroadcast: false, reply: this.join() } : { rebroadcast: false };
    }
    this.#statusTimes.set(node, ltime);
    if (leaving) this.#left.add(node);
    else this.#left.delete(node);
    return { rebroadcast: true, intent: { node, leaving } };
  }

  #advance(): number {
    return ++this.#clock;
  }

  #witness(ltime: number): boolean {
    if (!plausible(ltime, this.#clock)) return false;
    if (ltime >= this.#clock) this.#clock = ltime + 1;
    return true;
  }

  /** Whether an event is new and must be reported. A new event is stored for table exchanges. */
  #isNew(event: RecentEvent): boolean {
    const { ltime, name, payload } = event;
    if (ltime < this.#eventFloor || !plausible(ltime, this.#eventClock) || forgotten(ltime, this.#eventClock))
      return false;
    this.#eventClock = Math.max(this.#eventClock, ltime + 1);
    if (!this.#seenEvents.add(`${ltime} ${name} ${textKey(payload)}`, ltime)) return false;
    this.#recent.push(event);
    this.#recentBytes += payload.length;
    while (this.#recent.length > REPEATED || this.#recentBytes > REPEATED_BYTES)
      this.#recentBytes -= this.#recent.shift()?.payload.length ?? 0;
    return true;
  }
}

/** Identities of the latest messages of one kind. */
class SeenMessages {
  readonly #times = new Map<string, number>();
  /** Lamport time below which all messages count as seen, because an identity of that age was dropped. */
  #floor = 0;

  /**
   * Adds the identity of a message. Returns false if the message was added before, or if its identity may have been
   * dropped.
   */
  add(key: string, ltime: number): boolean {
    if (ltime < this.#floor || this.#times.has(key)) return false;
    this.#times.set(key, ltime);
    const [oldest] = this.#times.size > REMEMBERED ? this.#times : [];
    if (oldest !== undefined) {
      this.#times.delete(oldest[0]);
      this.#floor = Math.max(this.#floor, oldest[1] + 1);
    }
    return true;
  }
}

function plausible(ltime: number, clock: number): boolean {
  return Number.isSafeInteger(ltime) && ltime >= 0 && ltime < MAX_LTIME && ltime - clock < MAX_LTIME_JUMP;
}

/**
 * Whether a Lamport time is so old that its identities may have been dropped. Then a duplicate cannot be detected, so
 * the message counts as a replay, as in Serf's buffer.
 */
function forgotten(ltime: number, clock: number): boolean {
  return ltime + REMEMBERED < clock;
}

/**
 * The newest events of a table exchange, oldest first, within limits. Each event is reported to all processes that
 * follow the ring, and the agent disconnects a client that receives megabytes at once as too slow.
 */
function newest(events: readonly RecentEvent[]): RecentEvent[] {
  const sorted = events.toSorted((left, right) => right.ltime - left.ltime).slice(0, REPEATED);
  let bytes = 0;
  const end = sorted.findIndex(({ payload }) => {
    bytes += payload.length;
    return bytes > REPEATED_BYTES;
  });
  return (end < 0 ? sorted : sorted.slice(0, end)).toReversed();
}

function textKey(payload: Uint8Array): string {
  return Buffer.from(payload.buffer, payload.byteOffset, payload.length).toString('latin1');
}

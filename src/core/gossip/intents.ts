import type { SerfMessage, SerfQuery, SerfResponse, SerfState } from './port.ts';

/** How many messages are remembered so that each is passed on and reported once. */
const REMEMBERED = 512;
/** Lamport times above this are refused: beyond it numbers are no longer exact. */
const MAX_LTIME = 2 ** 52;
/** A forged far future would make every later honest message look stale; honest rings do not jump like this. */
const MAX_LTIME_JUMP = 2 ** 32;

/** What to do about a message of the layer above. */
export interface IntentWork {
  /** Pass the message on unchanged: it was news. */
  readonly rebroadcast: boolean;
  /** A member announced that it leaves (true) or is here to stay (false). */
  readonly intent?: { readonly node: string; readonly leaving: boolean };
  /** To be encoded and broadcast: refutes an announcement that this member leaves. */
  readonly reply?: Extract<SerfMessage, { kind: 'join' }>;
  readonly event?: { readonly name: string; readonly payload: Uint8Array; readonly ltime: number };
  /** A question that has not been seen before. */
  readonly query?: SerfQuery;
  readonly response?: SerfResponse;
}

const NOTHING: IntentWork = { rebroadcast: false };

/**
 * The part of Serf above memberlist that a member must play for stock agents to tell leaving from failing:
 * Lamport-timed join and leave intents, and events passed on once. Pure.
 */
export class SerfIntents {
  readonly #self: string;
  readonly #maxMembers: number;
  /** Lamport time of the newest intent per member. */
  readonly #statusTimes = new Map<string, number>();
  readonly #left = new Set<string>();
  readonly #seen = new Set<string>();
  #clock = 1;
  #eventClock = 1;
  #queryClock = 1;
  #leaving = false;

  constructor(self: string, maxMembers: number) {
    this.#self = self;
    this.#maxMembers = maxMembers;
  }

  /** The announcement to make after joining. */
  join(): Extract<SerfMessage, { kind: 'join' }> {
    this.#leaving = false;
    const ltime = this.#advance();
    this.#statusTimes.set(this.#self, ltime);
    return { kind: 'join', ltime, node: this.#self };
  }

  /** The announcement to make before leaving. */
  leave(): Extract<SerfMessage, { kind: 'leave' }> {
    this.#leaving = true;
    const ltime = this.#advance();
    this.#statusTimes.set(this.#self, ltime);
    return { kind: 'leave', ltime, node: this.#self, prune: false };
  }

  userEvent(name: string, payload: Uint8Array, coalesce: boolean): Extract<SerfMessage, { kind: 'user-event' }> {
    const ltime = this.#eventClock++;
    this.#remember(`event ${ltime} ${name} ${textKey(payload)}`);
    return { kind: 'user-event', ltime, name, payload, coalesce };
  }

  /** A question of ours, with the time that makes it one of its own. */
  query(question: Omit<SerfQuery, 'ltime'>): SerfQuery {
    const ltime = this.#queryClock++;
    this.#remember(`query ${ltime} ${question.id}`);
    return { ...question, ltime };
  }

  receive(message: SerfMessage): IntentWork {
    switch (message.kind) {
      case 'join':
      case 'leave':
        return this.#intent(message.kind === 'leave', message.node, message.ltime);
      case 'user-event': {
        const { ltime, name, payload } = message;
        if (!plausible(ltime, this.#eventClock) || forgotten(ltime, this.#eventClock)) return NOTHING;
        this.#eventClock = Math.max(this.#eventClock, ltime + 1);
        if (!this.#remember(`event ${ltime} ${name} ${textKey(payload)}`)) return NOTHING;
        return { rebroadcast: true, event: { name, payload, ltime } };
      }
      case 'query': {
        const { ltime, id, noBroadcast } = message;
        if (!plausible(ltime, this.#queryClock) || forgotten(ltime, this.#queryClock)) return NOTHING;
        this.#queryClock = Math.max(this.#queryClock, ltime + 1);
        if (!this.#remember(`query ${ltime} ${id}`)) return NOTHING;
        return { rebroadcast: !noBroadcast, query: message };
      }
      case 'query-response':
        return { rebroadcast: false, response: message };
      case 'other':
        return NOTHING;
    }
  }

  /** Our part of a table exchange. */
  state(): SerfState {
    return {
      ltime: this.#clock,
      statusTimes: this.#statusTimes,
      leftMembers: [...this.#left],
      eventTime: this.#eventClock,
      queryTime: this.#queryClock,
    };
  }

  /**
   * The other side's part of a table exchange. What is to be done, one entry per intent that was news; nothing is
   * passed on.
   */
  merge(state: SerfState): IntentWork[] {
    if (state.ltime > 0) this.#witness(state.ltime - 1);
    if (plausible(state.eventTime, this.#eventClock)) this.#eventClock = Math.max(this.#eventClock, state.eventTime);
    if (plausible(state.queryTime, this.#queryClock)) this.#queryClock = Math.max(this.#queryClock, state.queryTime);
    const left = new Set(state.leftMembers);
    const works: IntentWork[] = [];
    for (const [node, ltime] of state.statusTimes) {
      const work = this.#intent(left.has(node), node, ltime);
      if (work.intent !== undefined || work.reply !== undefined) works.push(work);
    }
    return works;
  }

  /** The ring no longer knows this member. */
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
      // Left over from a former life, or a lie.
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

  #remember(key: string): boolean {
    if (this.#seen.has(key)) return false;
    this.#seen.add(key);
    if (this.#seen.size > REMEMBERED) {
      const [oldest] = this.#seen;
      if (oldest !== undefined) this.#seen.delete(oldest);
    }
    return true;
  }
}

function plausible(ltime: number, clock: number): boolean {
  return Number.isSafeInteger(ltime) && ltime >= 0 && ltime < MAX_LTIME && ltime - clock < MAX_LTIME_JUMP;
}

/** Older than the remembered window, so duplicates cannot be detected: treated as a replay, as Serf's buffer does. */
function forgotten(ltime: number, clock: number): boolean {
  return ltime + REMEMBERED < clock;
}

function textKey(payload: Uint8Array): string {
  let text = '';
  for (const byte of payload) text += String.fromCharCode(byte);
  return text;
}

import { BroadcastQueue, transmitLimit } from './broadcast-queue.ts';
import type { GossipConfig } from './config.ts';
import type { Member, MemberTable } from './member-table.ts';
import type { EncodeMessage, GossipMessage, PeerAddress } from './port.ts';
import { emptyWork, type MembershipEvent, type Work } from './work.ts';

/**
 * Bytes that are needed to join messages into one datagram: once, and per message. Source: memberlist's compound
 * message.
 */
const COMPOUND_HEADER = 2;
const COMPOUND_PER_MESSAGE = 2;
/** Maximum number of messages in a compound message, which stores the number in one byte. */
const MAX_PARTS = 255;

/** Collects the work of a step and fills the free space of every datagram with queued broadcasts. */
export class Outbox {
  readonly #config: GossipConfig;
  readonly #table: MemberTable;
  readonly #encode: EncodeMessage;
  readonly #news: BroadcastQueue;
  readonly #user: BroadcastQueue;
  #work = emptyWork();

  constructor(config: GossipConfig, table: MemberTable, encode: EncodeMessage) {
    this.#config = config;
    this.#table = table;
    this.#encode = encode;
    const limits = { maxCount: config.maxQueuedBroadcasts, maxBytes: config.maxQueuedBytes };
    this.#news = new BroadcastQueue(limits);
    this.#user = new BroadcastQueue(limits);
  }

  get waiting(): number {
    return this.#news.length + this.#user.length;
  }

  /** Longest encoded message that fits a datagram. */
  get maxMessageBytes(): number {
    return this.#config.packetBytes - COMPOUND_HEADER - COMPOUND_PER_MESSAGE;
  }

  get work(): Work {
    return this.#work;
  }

  /** Returns the collected work and starts a new collection. */
  flush(): Work {
    const work = this.#work;
    this.#work = emptyWork();
    return work;
  }

  event(event: MembershipEvent): void {
    this.#work.events.push(event);
  }

  /** Queues a broadcast about the member `message.node`. */
  spread(message: GossipMessage & { readonly node: string }, token?: number): void {
    this.#news.push({
      subject: message.node,
      bytes: this.#encode(message),
      ...(token === undefined ? {} : { done: this.#done(token) }),
    });
  }

  spreadUser(payload: Uint8Array, subject: string | undefined, token: number | undefined): void {
    const bytes = this.#encode({ kind: 'user', payload });
    const done = token === undefined ? undefined : this.#done(token);
    if (bytes.length > this.maxMessageBytes) {
      done?.(false);
      return;
    }
    this.#user.push({ subject, bytes, ...(done === undefined ? {} : { done }) });
  }

  /**
   * Sends messages immediately. Queued broadcasts are added only if the receiver is a known member, so that a small
   * request with a forged address never causes a large response.
   */
  send(to: PeerAddress, member: Member | undefined, ...messages: readonly GossipMessage[]): void {
    const parts = messages.map((message) => this.#encode(message));
    if (member !== undefined) {
      let used = COMPOUND_HEADER;
      for (const part of parts) used += part.length + COMPOUND_PER_MESSAGE;
      parts.push(...this.#take(this.#config.packetBytes - used, MAX_PARTS - parts.length));
    }
    this.#work.packets.push({ to, parts, peerProtocol: member?.versions[1] ?? 0 });
  }

  /** Sends queued broadcasts to `member`. Returns false if the queue is empty. */
  gossipTo(member: Member): boolean {
    const parts = this.#take(this.#config.packetBytes - COMPOUND_HEADER, MAX_PARTS);
    if (parts.length === 0) return false;
    this.#work.packets.push({ to: member.address, parts, peerProtocol: member.versions[1] });
    return true;
  }

  /** Drops queued broadcasts, because the ring has no other member. */
  discard(): void {
    this.#news.clear();
    this.#user.clear();
  }

  #take(budget: number, maxParts: number): Uint8Array[] {
    if (this.waiting === 0) return [];
    const limit = Math.max(1, transmitLimit(this.#config.retransmitMult, this.#table.present()));
    const parts = this.#news.take(COMPOUND_PER_MESSAGE, budget, limit, maxParts);
    let left = budget;
    for (const part of parts) left -= part.length + COMPOUND_PER_MESSAGE;
    parts.push(...this.#user.take(COMPOUND_PER_MESSAGE, left, limit, maxParts - parts.length));
    return parts;
  }

  #done(token: number): (sent: boolean) => void {
    return (sent) => this.event({ kind: 'broadcast-done', token, sent });
  }
}

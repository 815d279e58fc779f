import { assert, unreachable } from '../../base/errors.ts';
import { Awareness } from './awareness.ts';
import { Broadcasts } from './broadcasts.ts';
import type { GossipConfig } from './config.ts';
import { isDeadOrLeft, type Member, MemberTable, viewOf } from './member-table.ts';
import { Outbox } from './outbox.ts';
import { type EncodeMessage, type GossipMessage, MAX_META_BYTES, type PeerAddress, type RingState } from './port.ts';
import { Prober } from './prober.ts';
import type { GossipInput, MemberView, Work } from './work.ts';

export interface GossipSettings {
  readonly config: GossipConfig;
  readonly name: string;
  /** Address at which other members reach this member. */
  readonly address: PeerAddress;
  readonly meta: Uint8Array;
  readonly encode: EncodeMessage;
}

/**
 * One member of a gossip ring. It performs no I/O: every call returns the {@link Work} to perform. Time (milliseconds
 * from any monotonic origin) and randomness are arguments, so equal calls return equal work.
 *
 * Call `start` once, `step` for each input, and `tick` at `nextTickMs()`.
 */
export class Gossip {
  readonly #config: GossipConfig;
  readonly #table = new MemberTable();
  readonly #self: Member;
  readonly #awareness: Awareness;
  readonly #outbox: Outbox;
  readonly #broadcasts: Broadcasts;
  readonly #prober: Prober;
  #gossipMs = Number.POSITIVE_INFINITY;
  /** Time of the last round of gossip, in milliseconds. */
  #gossipedMs = Number.NEGATIVE_INFINITY;
  #pushPullMs = Number.POSITIVE_INFINITY;
  #reconnectMs = Number.POSITIVE_INFINITY;

  constructor(settings: GossipSettings) {
    const { config, name, address, meta } = settings;
    assert(meta.length <= MAX_META_BYTES, `metadata of ${meta.length} bytes`);
    this.#config = config;
    this.#self = {
      name,
      address,
      meta,
      versions: config.versions,
      incarnation: 1,
      state: 'alive',
      sinceMs: 0,
      rttMs: undefined,
      leaving: false,
    };
    this.#awareness = new Awareness(config.awarenessLimit);
    this.#outbox = new Outbox(config, this.#table, settings.encode);
    this.#broadcasts = new Broadcasts(config, this.#table, this.#outbox, this.#awareness, this.#self);
    this.#prober = new Prober(config, this.#table, this.#outbox, this.#awareness, this.#broadcasts, this.#self);
  }

  /** Lifeguard's local health score: 0 is healthy. */
  get health(): number {
    return this.#awareness.score;
  }

  get self(): MemberView {
    return viewOf(this.#self);
  }

  /** Number of queued broadcasts. */
  get waiting(): number {
    return this.#outbox.waiting;
  }

  /** Maximum payload of a `broadcast` input. The machine reports a longer payload as not sent. */
  get maxUserPayloadBytes(): number {
    return this.#outbox.maxMessageBytes - 1;
  }

  members(): MemberView[] {
    return Array.from(this.#table.all(), viewOf);
  }

  member(name: string): MemberView | undefined {
    const member = this.#table.get(name);
    return member === undefined ? undefined : viewOf(member);
  }

  /** The living member at an address; if there is none, the member that last had this address. */
  at(address: PeerAddress): MemberView | undefined {
    const member = this.#table.at(address);
    return member === undefined ? undefined : viewOf(member);
  }

  start(nowMs: number, random: () => number): Work {
    assert(this.#table.size === 0, 'started twice');
    this.#self.sinceMs = nowMs;
    this.#table.add(this.#self, random);
    this.#prober.start(nowMs, random);
    this.#pushPullMs = nowMs + random() * this.#config.pushPullIntervalMs;
    this.#reconnectMs = nowMs + random() * this.#config.reconnectIntervalMs;
    this.#broadcasts.announce();
    this.#outbox.event({ kind: 'joined', member: viewOf(this.#self) });
    return this.#finish(nowMs);
  }

  step(input: GossipInput, nowMs: number, random: () => number): Work {
    this.#noticeStall(nowMs);
    switch (input.kind) {
      case 'packet':
        this.#packet(input.from, input.messages, nowMs, random);
        break;
      case 'state':
        for (const row of input.state.rows) this.#broadcasts.row(row, nowMs, random);
        break;
      case 'stream-ping':
        if (input.answered) this.#prober.streamAnswered(input.seq);
        break;
      case 'meta':
        assert(input.meta.length <= MAX_META_BYTES, `metadata of ${input.meta.length} bytes`);
        this.#broadcasts.changeMeta(input.meta);
        break;
      case 'broadcast':
        this.#outbox.spreadUser(input.payload, input.subject, input.token);
        break;
      case 'intent':
        this.#broadcasts.intent(input.node, input.leaving);
        break;
      case 'leave':
        this.#broadcasts.leave(input.token, nowMs);
        break;
      default:
        unreachable(input);
    }
    return this.#finish(nowMs);
  }

  tick(nowMs: number, random: () => number): Work {
    this.#noticeStall(nowMs);
    this.#broadcasts.expire(nowMs);
    if (!this.#broadcasts.leaving) {
      this.#prober.tick(nowMs, random);
      if (nowMs >= this.#pushPullMs) this.#pushPull(nowMs, random);
      if (nowMs >= this.#reconnectMs) this.#reconnect(nowMs, random);
    }
    if (nowMs >= this.#gossipMs) this.#gossip(nowMs, random);
    return this.#finish(nowMs);
  }

  /** Time at which `tick` must be called next. Infinity if this member is alone and no work is pending. */
  nextTickMs(): number {
    const maintenanceMs =
      this.#broadcasts.leaving || this.#alone
        ? Number.POSITIVE_INFINITY
        : Math.min(this.#prober.nextMs(), this.#pushPullMs, this.#reconnectMs);
    return Math.min(maintenanceMs, this.#gossipMs, this.#broadcasts.nextExpiryMs());
  }

  get #alone(): boolean {
    return this.#table.size <= 1;
  }

  /** This member's table for an exchange. */
  state(userState: Uint8Array, join: boolean): RingState {
    const rows = Array.from(this.#table.all(), (member) => ({
      name: member.name,
      address: member.address,
      meta: member.meta,
      incarnation: member.incarnation,
      state: member.state,
      versions: member.versions,
    }));
    return { rows, userState, join };
  }

  #packet(from: PeerAddress, messages: readonly GossipMessage[], nowMs: number, random: () => number): void {
    // Only the first ping in a datagram is answered. Otherwise this member could amplify the traffic of an attacker.
    let isPingAnswered = false;
    for (const message of messages) {
      switch (message.kind) {
        case 'ping':
          if (isPingAnswered || (message.node !== '' && message.node !== this.#self.name) || this.#broadcasts.leaving)
            break;
          isPingAnswered = true;
          // The ack goes to the datagram's source address, never to an address in its contents.
          this.#outbox.send(from, this.#table.at(from), { kind: 'ack', seq: message.seq });
          break;
        case 'indirect-ping':
          if (isPingAnswered) break;
          isPingAnswered = true;
          this.#prober.relay(message, from, nowMs, random);
          break;
        case 'ack':
          this.#prober.answered(message.seq, nowMs);
          break;
        case 'nack':
          this.#prober.nacked(message.seq);
          break;
        case 'alive':
          this.#broadcasts.alive(message, nowMs, random);
          break;
        case 'suspect':
        case 'dead':
          this.#broadcasts.accuse(message, nowMs);
          break;
        case 'user':
          this.#outbox.event({ kind: 'user', payload: message.payload });
          break;
        default:
          unreachable(message);
      }
    }
  }

  #gossip(nowMs: number, random: () => number): void {
    this.#gossipMs = Number.POSITIVE_INFINITY;
    this.#gossipedMs = nowMs;
    const { gossipNodes, gossipToTheDeadMs } = this.#config;
    const targets = this.#table.pick(
      gossipNodes,
      (each) => each !== this.#self && (!isDeadOrLeft(each) || nowMs - each.sinceMs < gossipToTheDeadMs),
      random,
    );
    for (const target of targets) if (!this.#outbox.gossipTo(target)) break;
    // A joining member receives the whole table, so no broadcast is queued for it.
    if (targets.length === 0) this.#outbox.discard();
  }

  #pushPull(nowMs: number, random: () => number): void {
    const members = this.#table.present();
    // Tables grow with the ring, so a larger ring exchanges them less often (memberlist's `pushPullScale`).
    const scale = members <= 32 ? 1 : Math.ceil(Math.log2(members) - 5) + 1;
    this.#pushPullMs = nowMs + this.#config.pushPullIntervalMs * scale;
    this.#exchangeWith((each) => each.state === 'alive' && each !== this.#self, random);
  }

  #reconnect(nowMs: number, random: () => number): void {
    this.#reconnectMs = nowMs + this.#config.reconnectIntervalMs;
    this.#exchangeWith((each) => each.state === 'dead', random);
  }

  #exchangeWith(eligible: (member: Member) => boolean, random: () => number): void {
    const [member] = this.#table.pick(1, eligible, random);
    if (member !== undefined) this.#outbox.work.exchanges.push({ node: member.name, to: member.address });
  }

  /**
   * Detects that this member was paused. If the call is late, this member was paused or starved; other members were not
   * silent. The delay is known, so every deadline is extended by this time (an extension of Lifeguard).
   */
  #noticeStall(nowMs: number): void {
    // A member alone in its ring schedules no wake-ups, so its next call is never late.
    if (this.#alone) this.#notBefore(nowMs);
    const lateMs = nowMs - this.nextTickMs();
    if (lateMs < this.#config.stallMs) return;
    this.#awareness.apply(1);
    this.#prober.abandon(nowMs);
    this.#broadcasts.postpone(lateMs);
    this.#gossipMs = Math.max(this.#gossipMs, nowMs);
    this.#notBefore(nowMs);
    this.#outbox.event({ kind: 'stalled', byMs: lateMs });
  }

  #notBefore(nowMs: number): void {
    this.#prober.notBefore(nowMs);
    this.#pushPullMs = Math.max(this.#pushPullMs, nowMs);
    this.#reconnectMs = Math.max(this.#reconnectMs, nowMs);
  }

  #finish(nowMs: number): Work {
    // The first broadcast after a pause is sent immediately. Later broadcasts wait for the next gossip interval.
    if (this.#outbox.waiting > 0 && this.#gossipMs === Number.POSITIVE_INFINITY)
      this.#gossipMs = Math.max(nowMs, this.#gossipedMs + this.#config.gossipIntervalMs);
    return this.#outbox.flush();
  }
}

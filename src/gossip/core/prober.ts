import type { Awareness } from './awareness.ts';
import type { Broadcasts } from './broadcasts.ts';
import type { GossipConfig } from './config.ts';
import { isDeadOrLeft, type Member, type MemberTable, sameAddress } from './member-table.ts';
import type { Outbox } from './outbox.ts';
import type { GossipMessage, IndirectPingMessage, PeerAddress } from './port.ts';

/** First protocol version that supports nacks. */
const NACK_PROTOCOL = 4;
/**
 * Share of the probe timeout after which an intermediary sends its nack, so that the nack arrives in time (Lifeguard).
 */
const NACK_SHARE = 0.8;
const RTT_WEIGHT = 0.2;

interface Probe {
  readonly member: Member;
  readonly seq: number;
  readonly sentMs: number;
  readonly indirectMs: number;
  readonly deadlineMs: number;
  indirectSent: boolean;
  expectedNacks: number;
  nacks: number;
}

interface Relay {
  readonly seq: number;
  readonly requester: PeerAddress;
  readonly requesterSeq: number;
  readonly nackMs: number;
  readonly deadlineMs: number;
  nack: boolean;
}

/**
 * Failure detector. It pings one member at a time. If the member stays silent, other members are requested to ping it
 * and a stream connection is tried. If all of these fail, the member is suspected. The prober also pings members on
 * behalf of other probers.
 */
export class Prober {
  readonly #config: GossipConfig;
  readonly #table: MemberTable;
  readonly #outbox: Outbox;
  readonly #awareness: Awareness;
  readonly #broadcasts: Broadcasts;
  readonly #self: Member;
  #probe: Probe | undefined;
  #nextProbeMs = Number.POSITIVE_INFINITY;
  #outOfTurn = false;
  readonly #relays = new Map<number, Relay>();

  constructor(
    config: GossipConfig,
    table: MemberTable,
    outbox: Outbox,
    awareness: Awareness,
    broadcasts: Broadcasts,
    self: Member,
  ) {
    this.#config = config;
    this.#table = table;
    this.#outbox = outbox;
    this.#awareness = awareness;
    this.#broadcasts = broadcasts;
    this.#self = self;
  }

  start(nowMs: number, random: () => number): void {
    this.#nextProbeMs = nowMs + random() * this.#config.probeIntervalMs;
  }

  nextMs(): number {
    const probe = this.#probe;
    // Only one probe runs at a time, so the next probe starts after the current one has ended.
    let next = this.#nextProbeMs;
    if (probe !== undefined) next = probe.indirectSent ? probe.deadlineMs : probe.indirectMs;
    for (const relay of this.#relays.values()) next = Math.min(next, relay.nack ? relay.nackMs : relay.deadlineMs);
    return next;
  }

  tick(nowMs: number, random: () => number): void {
    this.#expireRelays(nowMs);
    const probe = this.#probe;
    if (probe !== undefined) {
      if (isDeadOrLeft(probe.member)) this.#probe = undefined;
      else if (nowMs >= probe.deadlineMs) this.#fail(probe, nowMs);
      else if (!probe.indirectSent && nowMs >= probe.indirectMs) this.#sendIndirectPings(probe, random);
    }
    if (this.#probe === undefined && nowMs >= this.#nextProbeMs) this.#begin(nowMs, random);
  }

  /** Ends outstanding probes without a result. After a pause of this member, missing responses prove nothing. */
  abandon(nowMs: number): void {
    this.#probe = undefined;
    this.#relays.clear();
    this.notBefore(nowMs);
  }

  notBefore(nowMs: number): void {
    this.#nextProbeMs = Math.max(this.#nextProbeMs, nowMs);
  }

  answered(seq: number, nowMs: number): void {
    const probe = this.#probe;
    if (probe?.seq === seq) {
      this.#probe = undefined;
      this.#awareness.apply(-1);
      if (!probe.indirectSent) {
        const rtt = nowMs - probe.sentMs;
        const old = probe.member.rttMs;
        probe.member.rttMs = old === undefined ? rtt : old + RTT_WEIGHT * (rtt - old);
      }
      return;
    }
    const relay = this.#relays.get(seq);
    if (relay === undefined) return;
    this.#relays.delete(seq);
    this.#outbox.send(relay.requester, this.#table.at(relay.requester), { kind: 'ack', seq: relay.requesterSeq });
  }

  nacked(seq: number): void {
    if (this.#probe?.seq === seq) this.#probe.nacks++;
  }

  /** Ends a probe that succeeded over a stream. The member is alive, although datagrams to it are lost. */
  streamAnswered(seq: number): void {
    if (this.#probe?.seq !== seq) return;
    this.#probe = undefined;
    this.#awareness.apply(-1);
  }

  /**
   * Pings a member on behalf of `requester`. Only known members are pinged, so that a requester cannot direct pings to
   * arbitrary addresses.
   */
  relay(request: IndirectPingMessage, requester: PeerAddress, nowMs: number, random: () => number): void {
    const target = this.#table.get(request.node) ?? this.#table.at(request.target);
    if (target === undefined || target === this.#self || !sameAddress(target.address, request.target)) return;
    if (this.#relays.size >= this.#config.maxRelays) return;
    const seq = this.#sequence(random);
    const { probeTimeoutMs, probeIntervalMs } = this.#config;
    this.#relays.set(seq, {
      seq,
      requester,
      requesterSeq: request.seq,
      nack: request.nack,
      nackMs: nowMs + probeTimeoutMs * NACK_SHARE,
      deadlineMs: nowMs + Math.max(probeIntervalMs, probeTimeoutMs),
    });
    this.#outbox.send(target.address, target, this.#ping(seq, target));
  }

  #begin(nowMs: number, random: () => number): void {
    // Old rows are deleted here, because no probe is pending at this point.
    this.#broadcasts.reap(nowMs);
    this.#nextProbeMs = nowMs + this.#config.probeIntervalMs;
    const member = this.#next(random);
    if (member === undefined) return;
    const seq = this.#sequence(random);
    const interval = this.#awareness.scale(this.#config.probeIntervalMs);
    const timeout = Math.min(this.#awareness.scale(this.#config.probeTimeoutMs), interval / 2);
    this.#probe = {
      member,
      seq,
      sentMs: nowMs,
      indirectMs: nowMs + timeout,
      deadlineMs: nowMs + interval,
      indirectSent: false,
      expectedNacks: 0,
      nacks: 0,
    };
    const ping = this.#ping(seq, member);
    if (member.state === 'alive') {
      this.#outbox.send(member.address, member, ping);
      return;
    }
    // Lifeguard's buddy system: the ping informs a suspected member of the suspicion, so that it can refute before the
    // suspicion timeout expires.
    const { name, incarnation } = member;
    const warning: GossipMessage = { kind: 'suspect', incarnation, node: name, from: this.#self.name };
    this.#outbox.send(member.address, member, ping, warning);
  }

  /**
   * Selects the next member to probe. A member that another member suspects is probed out of turn: if it does not
   * respond, the confirmation shortens the suspicion, and if it responds, this member's suspicion ends. After such a
   * probe, the next one is in turn, so that many suspicions cannot prevent the probes of other members.
   */
  #next(random: () => number): Member | undefined {
    const suspect = this.#outOfTurn ? undefined : this.#broadcasts.suspectToCheck();
    this.#outOfTurn = suspect !== undefined;
    return suspect ?? this.#table.nextToProbe((each) => each !== this.#self && !isDeadOrLeft(each), random);
  }

  #sendIndirectPings(probe: Probe, random: () => number): void {
    probe.indirectSent = true;
    const { member, seq } = probe;
    const helpers = this.#table.pick(
      this.#config.indirectChecks,
      (each) => each.state === 'alive' && each !== this.#self && each !== member,
      random,
    );
    for (const helper of helpers) {
      const nack = helper.versions[1] >= NACK_PROTOCOL;
      if (nack) probe.expectedNacks++;
      this.#outbox.send(helper.address, helper, {
        kind: 'indirect-ping',
        seq,
        node: member.name,
        target: member.address,
        nack,
        from: { name: this.#self.name, address: this.#self.address },
      });
    }
    const timeoutMs = Math.max(1, probe.deadlineMs - probe.indirectMs);
    this.#outbox.work.streamPings.push({ seq, node: member.name, to: member.address, timeoutMs });
  }

  #fail(probe: Probe, nowMs: number): void {
    this.#probe = undefined;
    // Nacks prove that this member's network works. Missing nacks are a sign that this member itself is slow.
    this.#awareness.apply(probe.expectedNacks > 0 ? Math.max(0, probe.expectedNacks - probe.nacks) : 1);
    const { name, incarnation } = probe.member;
    this.#broadcasts.suspect({ kind: 'suspect', incarnation, node: name, from: this.#self.name }, nowMs);
  }

  #expireRelays(nowMs: number): void {
    for (const relay of this.#relays.values()) {
      if (relay.nack && nowMs >= relay.nackMs) {
        relay.nack = false;
        this.#outbox.send(relay.requester, this.#table.at(relay.requester), { kind: 'nack', seq: relay.requesterSeq });
      }
      if (nowMs >= relay.deadlineMs) this.#relays.delete(relay.seq);
    }
  }

  #ping(seq: number, member: Member): GossipMessage {
    const { name, address } = this.#self;
    return { kind: 'ping', seq, node: member.name, from: { name, address } };
  }

  /** Random sequence number, so that an ack proves that the ping was received. */
  #sequence(random: () => number): number {
    for (;;) {
      const seq = Math.floor(random() * 0x1_0000_0000) >>> 0;
      if (!this.#relays.has(seq) && this.#probe?.seq !== seq) return seq;
    }
  }
}

import type { Awareness } from './awareness.ts';
import type { GossipConfig } from './config.ts';
import { isDeadOrLeft, type Member, type MemberTable, sameAddress, viewOf } from './member-table.ts';
import type { Outbox } from './outbox.ts';
import {
  type AccusationMessage,
  type AliveMessage,
  MAX_INCARNATION,
  type ProtocolVersions,
  type StateRow,
} from './port.ts';
import { Suspicion, suspicionTimes } from './suspicion.ts';

/**
 * Minimum interval between two members that a full table drops for new ones. Only forged members fill the table.
 * Without the limit, each forged name costs a search of the table and some events.
 */
const DROP_INTERVAL_MS = 100;

/**
 * Applies claims about members in the order of SWIM §4.2. A higher incarnation wins. At equal incarnations, dead
 * overrides suspect and suspect overrides alive. Only the member itself raises its incarnation; it does so to refute an
 * accusation.
 */
export class Broadcasts {
  readonly #config: GossipConfig;
  readonly #table: MemberTable;
  readonly #outbox: Outbox;
  readonly #awareness: Awareness;
  readonly #self: Member;
  readonly #suspicions = new Map<string, Suspicion>();
  /** Time at which a full table dropped a member. */
  #droppedMs = Number.NEGATIVE_INFINITY;
  #leaving = false;
  #leaveToken: number | undefined;

  constructor(config: GossipConfig, table: MemberTable, outbox: Outbox, awareness: Awareness, self: Member) {
    this.#config = config;
    this.#table = table;
    this.#outbox = outbox;
    this.#awareness = awareness;
    this.#self = self;
  }

  get leaving(): boolean {
    return this.#leaving;
  }

  /** `isRow`: the claim is a row of another member's table, which may be older than a message. */
  alive(
    claim: AliveMessage,
    nowMs: number,
    random: () => number,
    { isRow = false }: { readonly isRow?: boolean } = {},
  ): void {
    if (claim.incarnation > MAX_INCARNATION || !compatible(claim.versions, this.#config.versions)) return;
    const self = claim.node === this.#self.name;
    if (self && this.#leaving) return;
    let member = this.#table.get(claim.node);
    const isNew = member === undefined;
    if (member === undefined) {
      if (!this.#makeRoom(nowMs)) return;
      member = {
        name: claim.node,
        address: claim.address,
        meta: claim.meta,
        versions: claim.versions,
        incarnation: claim.incarnation,
        state: 'dead',
        sinceMs: nowMs,
        rttMs: undefined,
        leaving: false,
      };
      this.#table.add(member, random);
    }
    if (!sameAddress(member.address, claim.address)) {
      if (!this.#isNameFree(member, nowMs)) {
        // A name conflict is not refuted: two members with the same name would raise their incarnations against each
        // other without end.
        this.#outbox.event({ kind: 'conflict', name: claim.node, address: claim.address });
        return;
      }
      // The claim comes from a new member with the name of a dead one. Its incarnation need not be higher.
      this.#table.move(member, claim.address);
      member.rttMs = undefined;
    } else if (self) {
      this.#onClaimAboutSelf(claim);
      return;
    } else if (!isNew && !overrides(claim, member, isRow)) {
      return;
    }
    this.#suspicions.delete(claim.node);
    const before = member.state;
    const changed = !sameContent(claim, member);
    member.incarnation = claim.incarnation;
    member.meta = claim.meta;
    member.versions = claim.versions;
    if (before !== 'alive') {
      member.state = 'alive';
      member.sinceMs = nowMs;
      this.#table.index(member);
    }
    this.#outbox.spread(claim);
    if (before === 'dead' || before === 'left') {
      member.leaving = false;
      this.#outbox.event({ kind: 'joined', member: viewOf(member) });
    } else {
      if (before === 'suspect') this.#outbox.event({ kind: 'recovered', member: viewOf(member) });
      if (changed) this.#outbox.event({ kind: 'updated', member: viewOf(member) });
    }
  }

  /** Whether another address may take the name of the member. */
  #isNameFree({ state, sinceMs }: Member, nowMs: number): boolean {
    const { deadReclaimMs, leftReclaimMs } = this.#config;
    if (state === 'left') return nowMs - sinceMs >= leftReclaimMs;
    return state === 'dead' && nowMs - sinceMs >= deadReclaimMs;
  }

  /** Applies a suspect or dead message received from another member. */
  accuse(claim: AccusationMessage, nowMs: number): void {
    // The order of claims with the maximum incarnation is unknown, see MAX_INCARNATION.
    if (claim.incarnation >= MAX_INCARNATION) {
      const isSelf = claim.node === this.#self.name && !this.#leaving;
      if (isSelf && claim.incarnation === MAX_INCARNATION) this.#refute(claim.incarnation);
      return;
    }
    if (claim.kind === 'suspect') this.suspect(claim, nowMs);
    else this.dead(claim, nowMs);
  }

  suspect(claim: AccusationMessage, nowMs: number): void {
    const member = this.#table.get(claim.node);
    if (member === undefined || claim.incarnation < member.incarnation) return;
    const current = this.#suspicions.get(claim.node);
    if (current !== undefined) {
      member.incarnation = claim.incarnation;
      // Independent confirmations are broadcast because they shorten the suspicion timeout at every member.
      if (current.confirm(claim.from)) this.#outbox.spread(claim);
      return;
    }
    if (member.state !== 'alive') return;
    if (member === this.#self) {
      this.#refute(claim.incarnation);
      return;
    }
    this.#outbox.spread(claim);
    member.incarnation = claim.incarnation;
    member.state = 'suspect';
    member.sinceMs = nowMs;
    const times = suspicionTimes(this.#table.present(), this.#config);
    this.#suspicions.set(claim.node, new Suspicion(times, claim.from, nowMs));
    this.#outbox.event({ kind: 'suspected', member: viewOf(member) });
  }

  dead(claim: AccusationMessage, nowMs: number): void {
    const member = this.#table.get(claim.node);
    if (member === undefined || claim.incarnation < member.incarnation) return;
    if (isDeadOrLeft(member)) {
      // The incarnation is recorded, so that an older alive message that arrives later does not revive the dead member.
      member.incarnation = claim.incarnation;
      return;
    }
    if (member === this.#self && !this.#leaving) {
      this.#refute(claim.incarnation);
      return;
    }
    this.#suspicions.delete(claim.node);
    member.incarnation = claim.incarnation;
    // Agents before memberlist 0.2 do not name the sender of a leave, so a member that has announced its leave counts
    // as left.
    member.state = claim.from === claim.node || member.leaving ? 'left' : 'dead';
    member.sinceMs = nowMs;
    this.#outbox.spread({ ...claim, kind: 'dead' }, member === this.#self ? this.#leaveToken : undefined);
    this.#outbox.event({ kind: member.state === 'left' ? 'left' : 'failed', member: viewOf(member) });
  }

  /**
   * Applies one row of another member's table. A row that reports a dead member only causes suspicion, so the member
   * can refute it.
   */
  row(row: StateRow, nowMs: number, random: () => number): void {
    const { name, incarnation } = row;
    if (row.state === 'alive') {
      const { address, meta, versions } = row;
      this.alive({ kind: 'alive', incarnation, node: name, address, meta, versions }, nowMs, random, { isRow: true });
    } else if (row.state === 'left') {
      this.accuse({ kind: 'dead', incarnation, node: name, from: name }, nowMs);
    } else {
      this.accuse({ kind: 'suspect', incarnation, node: name, from: this.#self.name }, nowMs);
    }
  }

  intent(node: string, leaving: boolean): void {
    const member = this.#table.get(node);
    if (member === undefined || member === this.#self) return;
    member.leaving = leaving;
    if (leaving && member.state === 'dead') {
      member.state = 'left';
      this.#outbox.event({ kind: 'left', member: viewOf(member) });
    }
  }

  changeMeta(meta: Uint8Array): void {
    if (this.#leaving || sameBytes(meta, this.#self.meta)) return;
    this.#self.meta = meta;
    this.#self.incarnation = Math.min(MAX_INCARNATION, this.#self.incarnation + 1);
    this.announce();
  }

  leave(token: number, nowMs: number): void {
    if (this.#leaving) return;
    this.#leaving = true;
    this.#leaveToken = token;
    const { name, incarnation } = this.#self;
    this.dead({ kind: 'dead', incarnation, node: name, from: name }, nowMs);
  }

  /** A suspected member that this member has not accused itself, for a probe of its own. */
  suspectToCheck(): Member | undefined {
    for (const [name, suspicion] of this.#suspicions) {
      if (suspicion.accusedBy(this.#self.name)) continue;
      const member = this.#table.get(name);
      if (member?.state === 'suspect') return member;
    }
    return undefined;
  }

  /** Declares members dead whose suspicion timeout has expired. */
  expire(nowMs: number): void {
    for (const [name, suspicion] of this.#suspicions) {
      if (suspicion.deadlineMs() > nowMs) continue;
      this.#suspicions.delete(name);
      const member = this.#table.get(name);
      if (member?.state !== 'suspect') continue;
      this.dead({ kind: 'dead', incarnation: member.incarnation, node: name, from: this.#self.name }, nowMs);
    }
  }

  nextExpiryMs(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const suspicion of this.#suspicions.values()) next = Math.min(next, suspicion.deadlineMs());
    return next;
  }

  postpone(byMs: number): void {
    for (const suspicion of this.#suspicions.values()) suspicion.postpone(byMs);
  }

  reap(nowMs: number): void {
    for (const member of this.#table.all())
      if (member !== this.#self && isDeadOrLeft(member) && nowMs - member.sinceMs >= this.#config.reapAfterMs)
        this.#forget(member);
  }

  announce(): void {
    const { name, incarnation, address, meta, versions } = this.#self;
    this.#outbox.spread({ kind: 'alive', incarnation, node: name, address, meta, versions });
  }

  /**
   * Handles an alive message about this member. The message is refuted only if its contents are different and its
   * incarnation is not lower than this member's.
   */
  #onClaimAboutSelf(claim: AliveMessage): void {
    const self = this.#self;
    if (claim.incarnation < self.incarnation) return;
    if (claim.incarnation === self.incarnation && sameContent(claim, self)) return;
    this.#refute(claim.incarnation);
  }

  /** Refutes an accusation with a higher incarnation. The accusation also worsens this member's local health. */
  #refute(accusedIncarnation: number): void {
    const self = this.#self;
    self.incarnation = Math.min(MAX_INCARNATION, Math.max(self.incarnation, accusedIncarnation) + 1);
    this.#awareness.apply(1);
    this.announce();
    this.#outbox.event({ kind: 'refuted', incarnation: self.incarnation });
  }

  /**
   * Ensures that the table has space for a new member. A full table drops the member that has been dead longest.
   * Returns false if it dropped a member only recently, or if no member has been dead for `leftReclaimMs`: a member
   * that was just reported as dead by a forged message keeps its row, and with it its name.
   */
  #makeRoom(nowMs: number): boolean {
    if (this.#table.size < this.#config.maxMembers) return true;
    if (nowMs - this.#droppedMs < DROP_INTERVAL_MS) return false;
    const isDroppable = (member: Member): boolean =>
      member !== this.#self && isDeadOrLeft(member) && nowMs - member.sinceMs >= this.#config.leftReclaimMs;
    let oldest: Member | undefined;
    for (const member of this.#table.all())
      if (isDroppable(member) && (oldest === undefined || member.sinceMs < oldest.sinceMs)) oldest = member;
    if (oldest === undefined) return false;
    this.#droppedMs = nowMs;
    this.#forget(oldest);
    return true;
  }

  #forget(member: Member): void {
    this.#table.remove(member);
    this.#outbox.event({ kind: 'forgotten', member: viewOf(member) });
  }
}

/** Reports whether each side supports the protocol version that the other side uses. */
function compatible(theirs: ProtocolVersions, ours: ProtocolVersions): boolean {
  return theirs[0] <= ours[2] && ours[2] <= theirs[1] && ours[0] <= theirs[2] && theirs[2] <= ours[1];
}

/**
 * Whether an alive message replaces the row of its member. At the maximum incarnation, which only a forged claim
 * reaches, a member cannot refute by a higher incarnation. There the last message counts, so that the row is correct
 * again when the forger stops.
 */
function overrides(claim: AliveMessage, member: Member, isRow: boolean): boolean {
  if (claim.incarnation < MAX_INCARNATION || member.incarnation < MAX_INCARNATION)
    return claim.incarnation > member.incarnation;
  return !isRow && (member.state !== 'alive' || !sameContent(claim, member));
}

type Content = Pick<Member, 'meta' | 'versions'>;
const sameContent = (a: Content, b: Content): boolean =>
  sameBytes(a.meta, b.meta) && sameVersions(a.versions, b.versions);

function sameVersions(a: ProtocolVersions, b: ProtocolVersions): boolean {
  return a.every((version, index) => version === b[index]);
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

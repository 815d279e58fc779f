import type { MemberState, PeerAddress, ProtocolVersions } from './port.ts';
import type { MemberView } from './work.ts';

/** One row of the table. Only the state machine changes it. */
export interface Member {
  readonly name: string;
  address: PeerAddress;
  meta: Uint8Array;
  versions: ProtocolVersions;
  incarnation: number;
  state: MemberState;
  sinceMs: number;
  rttMs: number | undefined;
  /** Whether the member has announced that it is about to leave. */
  leaving: boolean;
}

export function isDeadOrLeft(member: Member): boolean {
  return member.state === 'dead' || member.state === 'left';
}

export function sameAddress(a: PeerAddress, b: PeerAddress): boolean {
  return a.port === b.port && a.ip === b.ip;
}

export function viewOf(member: Member): MemberView {
  const { name, address, state, incarnation, meta, versions, sinceMs, rttMs } = member;
  return { name, address, state, incarnation, meta, versions, sinceMs, rttMs };
}

/** All known members by name and by address. Members are probed round-robin in a random order (SWIM §4.3). */
export class MemberTable {
  readonly #byName = new Map<string, Member>();
  readonly #byAddress = new Map<string, Member>();
  #order: Member[] = [];
  #cursor = 0;

  get size(): number {
    return this.#byName.size;
  }

  get(name: string): Member | undefined {
    return this.#byName.get(name);
  }

  /** The living member at an address; if there is none, the member that last had this address. */
  at(address: PeerAddress): Member | undefined {
    return this.#byAddress.get(keyOf(address));
  }

  all(): IterableIterator<Member> {
    return this.#byName.values();
  }

  /** Number of members that are neither dead nor departed. Every formula uses it as the ring's size. */
  present(): number {
    let count = 0;
    for (const member of this.#byName.values()) if (!isDeadOrLeft(member)) count++;
    return count;
  }

  /**
   * Adds a member at a random position of the probe order, so that the members of the ring do not all probe it at the
   * same time.
   */
  add(member: Member, random: () => number): void {
    this.#byName.set(member.name, member);
    this.index(member);
    const place = Math.floor(random() * (this.#order.length + 1));
    this.#order.push(member);
    const last = this.#order.length - 1;
    const other = this.#order[place];
    if (other !== undefined) {
      this.#order[last] = other;
      this.#order[place] = member;
    }
  }

  /** Indexes the member by its address, unless a living member already has that address. */
  index(member: Member): void {
    const key = keyOf(member.address);
    const present = this.#byAddress.get(key);
    if (present === undefined || present === member || isDeadOrLeft(present)) this.#byAddress.set(key, member);
  }

  move(member: Member, address: PeerAddress): void {
    const key = keyOf(member.address);
    if (this.#byAddress.get(key) === member) this.#byAddress.delete(key);
    member.address = address;
    this.index(member);
  }

  remove(member: Member): void {
    this.#byName.delete(member.name);
    const key = keyOf(member.address);
    if (this.#byAddress.get(key) === member) this.#byAddress.delete(key);
    const at = this.#order.indexOf(member);
    if (at >= 0) this.#order.splice(at, 1);
    if (at >= 0 && at < this.#cursor) this.#cursor--;
  }

  /** Returns the next member to probe. The order is shuffled after each full pass. */
  nextToProbe(eligible: (member: Member) => boolean, random: () => number): Member | undefined {
    for (let tried = 0; tried <= this.#order.length; tried++) {
      if (this.#cursor >= this.#order.length) {
        shuffle(this.#order, random);
        this.#cursor = 0;
      }
      const member = this.#order[this.#cursor++];
      if (member !== undefined && eligible(member)) return member;
    }
    return undefined;
  }

  /** Returns up to `count` distinct random members that satisfy `eligible`. */
  pick(count: number, eligible: (member: Member) => boolean, random: () => number): Member[] {
    const candidates: Member[] = [];
    for (const member of this.#byName.values()) if (eligible(member)) candidates.push(member);
    const picked: Member[] = [];
    while (picked.length < count && candidates.length > 0) {
      const at = Math.floor(random() * candidates.length);
      const chosen = candidates[at];
      const last = candidates.pop();
      if (chosen === undefined || last === undefined) break;
      if (at < candidates.length) candidates[at] = last;
      picked.push(chosen);
    }
    return picked;
  }
}

function keyOf(address: PeerAddress): string {
  return `${address.ip}|${address.port}`;
}

function shuffle(list: Member[], random: () => number): void {
  for (let i = list.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    const a = list[i];
    const b = list[j];
    if (a === undefined || b === undefined) continue;
    list[i] = b;
    list[j] = a;
  }
}

import type { Membership } from './membership.ts';
import type { NodeId, PeerHint } from './types.ts';

/**
 * Hints from gossip. They inform and never decide: hints make an election start sooner, later or elsewhere, and a
 * member that receives false hints still needs a quorum's votes. So every hint wears off by itself, counted in ticks.
 */
export class GossipHints {
  #now = 0;
  #dead: { readonly leader: NodeId; readonly until: number } | undefined;
  #seen: { readonly leader: NodeId; readonly until: number } | undefined;
  #peers: readonly PeerHint[] = [];
  /** Elections put off in a row because others see the leader. */
  #vetoes = 0;

  tick(): void {
    this.#now++;
  }

  confirmDead(leader: NodeId, ticks: number): void {
    this.#dead = { leader, until: this.#now + ticks };
    this.#seen = undefined;
  }

  othersSee(leader: NodeId, ticks: number): void {
    this.#seen = { leader, until: this.#now + ticks };
  }

  setPeers(peers: readonly PeerHint[]): void {
    this.#peers = peers;
  }

  /** Word from the leader itself overrules all hearsay. */
  heardFrom(leader: NodeId): void {
    this.#vetoes = 0;
    if (this.#dead?.leader === leader) this.#dead = undefined;
  }

  /** The leader that is confirmed dead; as long as it is, elections are in a hurry. */
  get deadLeader(): NodeId | undefined {
    return this.#dead !== undefined && this.#now < this.#dead.until ? this.#dead.leader : undefined;
  }

  /** Whether to put an election off because others still see `leader`. Says so a few times in a row at most. */
  veto(leader: NodeId | undefined): boolean {
    if (leader === undefined || this.#seen?.leader !== leader || this.#now >= this.#seen.until) return false;
    if (this.#vetoes >= MAX_VETOES) return false;
    this.#vetoes++;
    return true;
  }

  /** How many voters are before `self` by their names alone, the dead leader aside. */
  turn(self: NodeId, membership: Membership): number {
    return membership.ids().filter((id) => id < self && id !== this.deadLeader && membership.isVoter(id)).length;
  }

  /**
   * How many voters had better campaign before `self`: alive, healthier, further along; names break ties, so that there
   * is one first.
   */
  rank(self: NodeId, ownLast: number, membership: Membership): number {
    // Without hints, rank by name alone: two peers that campaign at the same time split the votes.
    if (this.#peers.length === 0) return this.turn(self, membership);
    const mine = { health: this.#peers.find((peer) => peer.id === self)?.health ?? 0, lastIndex: ownLast, id: self };
    return this.#peers.filter(
      (peer) =>
        peer.id !== self &&
        peer.alive &&
        peer.id !== this.deadLeader &&
        membership.isVoter(peer.id) &&
        before(peer, mine),
    ).length;
  }
}

const MAX_VETOES = 3;

type Standing = Pick<PeerHint, 'health' | 'lastIndex' | 'id'>;
function before(a: Standing, b: Standing): boolean {
  if (a.health !== b.health) return a.health < b.health;
  if (a.lastIndex !== b.lastIndex) return a.lastIndex > b.lastIndex;
  return a.id < b.id;
}

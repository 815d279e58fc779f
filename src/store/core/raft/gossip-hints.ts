import type { Membership } from './membership.ts';
import type { NodeId, PeerHint } from './types.ts';

/**
 * Hints from gossip. They never decide an election: they make it start earlier, later or at another member. A member
 * with wrong hints still needs the votes of a quorum, and every hint expires after a number of ticks.
 */
export class GossipHints {
  #now = 0;
  #dead: { readonly leader: NodeId; readonly until: number } | undefined;
  #seen: { readonly leader: NodeId; readonly until: number } | undefined;
  #peers: readonly PeerHint[] = [];
  /** Number of consecutive elections postponed because other members see the leader. */
  #vetoes = 0;

  tick(): void {
    this.#now++;
  }

  confirmDead(leader: NodeId, ticks: number): void {
    this.#dead = { leader, until: this.#now + ticks };
    this.#seen = undefined;
  }

  leaderSeen(leader: NodeId, ticks: number): void {
    this.#seen = { leader, until: this.#now + ticks };
  }

  setPeers(peers: readonly PeerHint[]): void {
    this.#peers = peers;
  }

  /** A message from the leader itself overrides all gossip about it. */
  onLeaderMessage(leader: NodeId): void {
    this.#vetoes = 0;
    if (this.#dead?.leader === leader) this.#dead = undefined;
  }

  /** Leader that is confirmed dead. While it is set, elections start early. */
  get deadLeader(): NodeId | undefined {
    return this.#dead !== undefined && this.#now < this.#dead.until ? this.#dead.leader : undefined;
  }

  /**
   * Whether to postpone an election because other members still see `leader`. The number of consecutive postponements
   * is limited.
   */
  veto(leader: NodeId | undefined): boolean {
    if (leader === undefined || this.#seen?.leader !== leader || this.#now >= this.#seen.until) return false;
    if (this.#vetoes >= MAX_VETOES) return false;
    this.#vetoes++;
    return true;
  }

  /** Number of voters whose names sort before `self`, without the dead leader. */
  turn(self: NodeId, membership: Membership): number {
    return membership.ids().filter((id) => id < self && id !== this.deadLeader && membership.isVoter(id)).length;
  }

  /**
   * Number of voters that should campaign before `self`: alive, healthier or with a longer log. Names break ties, so
   * exactly one voter has rank 0.
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

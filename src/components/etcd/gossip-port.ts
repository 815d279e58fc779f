/**
 * What gossip tells the store about its peers, and the store about itself. It informs and never decides: without it (no host process,
 * no ring) the store works all the same, and what it says may be late or wrong.
 */
export interface GossipMember {
  /** Of the store's cluster, 16 lower-case hexadecimal digits. */
  readonly memberId: string;
  /** Its host is in the ring and says that the store runs there. */
  readonly alive: boolean;
  /**
   * Its host was confirmed dead by the ring, or says that the store's process there ended without saying so. It may live all the same: a host
   * process that is killed leaves its pods running. Never true of one that was stopped in good order.
   */
  readonly confirmedDead: boolean;
  readonly appliedIndex: number;
  /** 0 is well; higher is worse: a host that is late (Lifeguard's local health), a disk that is slow. */
  readonly health: number;
  /** The leader that it hears from, as it says itself, and how long ago that was at most. Absent once it hears none, or is suspected. */
  readonly leaderSeen?: { readonly leader: string; readonly agoMs: number };
}

export interface GossipFacts {
  readonly memberId: string;
  readonly leader: string | undefined;
  readonly leaderHeardAgoMs: number;
  readonly appliedIndex: number;
  readonly fsyncMs: number;
}

export interface GossipHints {
  /**
   * Calls `listener` whenever something about the stores of the ring has changed, with all of them; with none when the host process is not
   * there. What was said last holds until the next call. Returns how to stop that.
   */
  subscribe(listener: (members: readonly GossipMember[]) => void): () => void;
  /**
   * To be called as often as anything changes: another leader, or none heard for a while, is told at once, the rest about once a second.
   */
  publish(facts: GossipFacts): void;
  /** Says that this store ends in good order. */
  close(): Promise<void>;
}

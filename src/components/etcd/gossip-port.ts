/**
 * What gossip reports to the store about its peers, and the store about itself. Gossip only gives hints: the store
 * works without it (no host process, no ring), and what it reports may be late or wrong.
 */
export interface GossipMember {
  /** Of the store's cluster, 16 lower-case hexadecimal digits. */
  readonly memberId: string;
  /** Its host is in the ring and reports that the store is running. */
  readonly alive: boolean;
  /**
   * The ring confirmed its host dead, or its host reports that the store's process exited unexpectedly. The store may
   * still run: a host process that is killed leaves its pods running. Never true of a store that was stopped in good
   * order.
   */
  readonly confirmedDead: boolean;
  readonly appliedIndex: number;
  /** 0 is healthy; higher is worse: a delayed host (Lifeguard's local health), a slow disk. */
  readonly health: number;
  /**
   * The leader that it reports, and the maximum age of the leader's last message. Absent without a leader or while
   * suspected.
   */
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
   * Calls `listener` with all stores of the ring whenever one of them changes; with none when the host process is not
   * running. A report is valid until the next call. Returns an unsubscribe function.
   */
  subscribe(listener: (members: readonly GossipMember[]) => void): () => void;
  /** To be called on every change: a new or lost leader is published at once, other changes about once a second. */
  publish(facts: GossipFacts): void;
  /** Reports that this store stops in good order. */
  close(): Promise<void>;
}

/**
 * Exchange of hints between gossip and the store. The store works without gossip (no host process, no ring), and
 * reports may be late or wrong.
 */
export interface GossipMember {
  /** Member ID in the store's cluster, 16 lower-case hexadecimal digits. */
  readonly memberId: string;
  /** Whether the host of the member is in the ring and reports that the store is running. */
  readonly alive: boolean;
  /**
   * Whether the ring confirmed the death of the member's host, or the host reports that the store's process exited
   * unexpectedly. The store may still run: a killed host process leaves its pods running. Never true for a store that
   * was stopped normally.
   */
  readonly confirmedDead: boolean;
  readonly appliedIndex: number;
  /** 0 is healthy; higher values are worse, such as a delayed host (Lifeguard's local health) or a slow disk. */
  readonly health: number;
  /**
   * Leader that the member reports, and the maximum age of the leader's last message. Absent without a leader or while
   * the member is suspected.
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
   * Calls `listener` with all stores of the ring whenever one of them changes, and with an empty list when the host
   * process is not running. A report is valid until the next call. Returns an unsubscribe function.
   */
  subscribe(listener: (members: readonly GossipMember[]) => void): () => void;
  /**
   * Must be called on every change. A new or lost leader is published immediately, other changes about once a second.
   */
  publish(facts: GossipFacts): void;
  /** Reports that this store stops normally. */
  close(): Promise<void>;
}

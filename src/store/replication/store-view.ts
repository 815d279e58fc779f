import type { Machine } from '../core/mvcc/machine.ts';
import type { Cluster } from '../membership/cluster.ts';
import type { Replica } from './replica.ts';

/** Read port between the parts of the store: its state, and the role of this member. */
export interface StoreView {
  readonly machine: Machine;
  readonly cluster: Cluster;
  /** Throws CodedError 'closed' before the store is open. */
  readonly replica: Replica;
  /** Whether this member leads and has applied everything from before its term. */
  readonly leads: boolean;
  /** Index of the last entry when this member became leader, or 0 on a follower. */
  readonly leadsFrom: number;
  /** Whether all committed revisions are visible: this member leads and no other member can commit. */
  readonly current: boolean;
  /**
   * Whether revisions may be visible before they are on disk. This requires that no other member can have, or start, a
   * different history; a crash then loses such revisions on the whole cluster. A cluster with a learner does not
   * qualify, because reads on a learner require committed revisions.
   */
  readonly solitary: boolean;
  readonly stopped: boolean;
  /** etcd's request timeout: five seconds for the disk and two election timeouts. Source: etcd server/config. */
  readonly requestTimeoutMs: number;
}

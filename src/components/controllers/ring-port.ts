import type { RingMemberState } from '../../core/reconcile/node-lifecycle/gossip.ts';

/** The gossip ring as this host sees it. */
export interface RingView {
  /** Calls with all members at each change; with none while the ring is out of reach. At most one listener. */
  follow(changed: (members: readonly RingMemberState[]) => void): void;
  /** Name of the node whose member leads the store; undefined: none is seen. */
  storeLeader(): string | undefined;
  stop(): void;
}

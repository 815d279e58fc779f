import type { RingMemberState } from './gossip.ts';

/** Gossip ring as seen by this host. */
export interface RingView {
  /**
   * Calls the listener with all members at each change, and with an empty list while the ring is unreachable. Supports
   * one listener.
   */
  follow(changed: (members: readonly RingMemberState[]) => void): void;
  /** Name of the node whose store member is the leader; undefined if no leader is observed. */
  storeLeader(): string | undefined;
  /** Address of a living member. */
  addressOf(name: string): string | undefined;
  stop(): void;
}

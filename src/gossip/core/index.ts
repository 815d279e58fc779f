/**
 * SWIM gossip with Lifeguard as a pure state machine: the members of the ring and their state (alive, suspect, dead).
 * The messages are memberlist's (see `port.ts`); the caller encodes them.
 */
export { edgeConfig, type GossipConfig, lanConfig, promptConfig } from './config.ts';
export { SerfIntents } from './intents.ts';
export { Gossip, type GossipSettings } from './machine.ts';
export { isStoreMemberId, type MemberMetadata, metadataOf, tagsOf } from './metadata.ts';
export type { Exchange, GossipInput, MembershipEvent, MemberView, Packet, StreamPing, Work } from './work.ts';

/**
 * SWIM gossip with Lifeguard as a pure machine: who is in the ring, who is suspected, who is dead. Speaks memberlist's
 * vocabulary (see `port.ts`); the encoding is the caller's.
 */
export { edgeConfig, type GossipConfig, lanConfig, promptConfig } from './config.ts';
export { SerfIntents } from './intents.ts';
export { Gossip, type GossipSettings } from './machine.ts';
export { isStoreMemberId, type MemberMetadata, metadataOf, tagsOf } from './metadata.ts';
export type { Exchange, GossipInput, MembershipEvent, MemberView, Packet, StreamPing, Work } from './work.ts';

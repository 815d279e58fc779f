/**
 * Membership of a gossip ring (DESIGN "Consensus and gossip"): the timers, the socket port and the list around the pure
 * machine of `core/gossip`.
 */

export { type Agent, type AgentDeps, createAgent } from './agent.ts';
export type { Membership, MembershipConfig, MembershipDeps, RingEvent, RingMember } from './deps.ts';
export { answerKeyQueries } from './keys.ts';
export { createMembership } from './membership.ts';

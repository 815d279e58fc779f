/**
 * Membership in a gossip ring: timers, socket port and member list around the pure
 * state machine of `gossip/core`.
 */

export { type Agent, type AgentDeps, createAgent } from './agent.ts';
export type { Membership, MembershipConfig, MembershipDeps, RingEvent, RingMember } from './deps.ts';
export { answerKeyQueries } from './keys.ts';
export { createMembership } from './membership.ts';

export {
  type GivenUp,
  type KnownRelease,
  planVersion,
  type VersionInput,
  type VersionPlan,
} from './cluster-version.ts';
export { planManualRollback, type RollbackFacts, type StoreFacts } from './manual-rollback.ts';
export { type PeerHost, probersOf, unreachableReason } from './peers.ts';
export { type SwitchRecord, snapshotAfterRollback } from './port.ts';
export type { RolloutHost } from './rollout.ts';
export { nextGuardStep, nextSwitchStep, STABLE_MS } from './switch.ts';

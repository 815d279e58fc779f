export {
  type GivenUp,
  type KnownRelease,
  planVersion,
  type VersionInput,
  type VersionPlan,
} from './cluster-version.ts';
export type { RolloutHost } from './rollout.ts';

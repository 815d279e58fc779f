export {
  attemptOf,
  EMPTY_STATE,
  type HostAction,
  type HostRevision,
  type HostState,
  type HostView,
  hostStep,
  installed,
  prunedHere,
  succeeded,
  withFallback,
  withoutRevisions,
} from './host.ts';
export { planRevisions } from './plan.ts';
export { keepLimit } from './prune.ts';
export { referredFiles } from './references.ts';
export type * from './types.ts';

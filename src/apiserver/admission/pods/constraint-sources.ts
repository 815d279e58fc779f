import type { Clock } from '../../../base/time/clock.ts';
import type { WatchCache } from '../../watch-cache/watch-cache.ts';
import type { ConstraintSources } from './constraint-review.ts';

export function constraintSources(
  cache: WatchCache,
  access: ConstraintSources['access'],
  clock: Clock,
): ConstraintSources {
  return {
    constraints: () => cache.kind('openshift.io/securitycontextconstraints').list(undefined),
    namespace: (name) => cache.kind('namespaces').get('', name),
    access,
    clock,
  };
}

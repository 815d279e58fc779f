/** Admission plug-ins of OpenShift. */

import type { KubeObject } from '../../api/meta/object.ts';
import type { GroupResource } from '../../api/quota/evaluators.ts';
import type { Labels } from '../../base/selector.ts';
import type { Clock } from '../../base/time/clock.ts';
import type { Authorization } from '../authorization/index.ts';
import type { Kinds } from '../pipeline/kinds.ts';
import type { WatchCache } from '../watch-cache/watch-cache.ts';
import type { AdmissionPlugin } from './admission.ts';
import {
  type RestrictionSources,
  restrictSubjectBindings,
  SUBJECT_BINDINGS_PLUGIN,
} from './identity/role-binding-restriction.ts';
import { INGRESS_PLUGIN, ingressHosts } from './network/ingress-hosts.ts';
import { constraintSources } from './pods/constraint-sources.ts';
import { execRestrictions, SCC_PLUGINS, securityContextConstraint } from './pods/security-context-constraints.ts';
import { clusterResourceQuota } from './quota/index.ts';

interface Deps {
  readonly cache: WatchCache;
  readonly clock: Clock;
  kinds(): Kinds;
}

export const OKD_PLUGINS: readonly string[] = [...SCC_PLUGINS, SUBJECT_BINDINGS_PLUGIN, INGRESS_PLUGIN];

/** Plug-ins of profile okd. */
export function okdPlugins(cache: WatchCache, authorization: Authorization, clock: Clock): AdmissionPlugin[] {
  const constraints = constraintSources(cache, authorization, clock);
  return [
    securityContextConstraint(constraints),
    execRestrictions(constraints, (namespace, name) => cache.kind('pods').get(namespace, name)),
    restrictSubjectBindings(sourcesOf(cache)),
    ingressHosts(authorization),
  ];
}

/** Plug-ins of all profiles. They run last because a quota reserves usage, which no later plug-in must reject. */
export function openshiftPlugins({ cache, clock, kinds }: Deps): AdmissionPlugin[] {
  const objectsOf = ({ group, plural }: GroupResource) =>
    kinds().all.find((kind) => kind.group === group && kind.plural === plural && kind.alias === undefined)?.cache;
  return [clusterResourceQuota({ cache, clock, objectsOf })];
}

function sourcesOf(cache: WatchCache): RestrictionSources {
  const labelsOf = (prefix: string, name: string): Labels | undefined => cache.kind(prefix).get('', name)?.labels();
  return {
    restrictions: (namespace) => {
      const restrictions = cache.kind('openshift.io/rolebindingrestrictions');
      return restrictions.size === 0 ? [] : restrictions.list(namespace);
    },
    userLabels: (name) => labelsOf('openshift.io/users', name),
    groupLabels: (name) => labelsOf('openshift.io/groups', name),
    groupsOf: (user) =>
      [...cache.kind('openshift.io/groups')]
        .filter((each) => each.shared<KubeObject & { users?: string[] | null }>().users?.includes(user) === true)
        .map(({ name }) => name),
  };
}

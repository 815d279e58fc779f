/**
 * GET and LIST of AppliedClusterResourceQuotas: the ClusterResourceQuotas that select a project. Source:
 * openshift/openshift-apiserver pkg/quota/apiserver/registry/appliedclusterresourcequota.
 */
import type { ClusterResourceQuota } from '../../api/kinds/cluster/clusterresourcequotas/index.ts';
import { errors } from '../../api/meta/status.ts';
import { clusterQuotasOf } from '../admission/quota/index.ts';
import type { Exchange } from '../http/exchange.ts';
import type { ResourceRequestInfo } from '../http/request-info.ts';
import type { ServedKind } from '../pipeline/kinds.ts';
import type { ReadContext } from '../rest/context.ts';
import { CachedObject } from '../watch-cache/cached-object.ts';
import { sendReads } from './computed-reads.ts';

export const isAppliedQuota = ({ kind, group }: ServedKind): boolean =>
  kind === 'AppliedClusterResourceQuota' && group === 'quota.openshift.io';

export function appliedQuotas(
  context: ReadContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
): Promise<void> {
  const { cache } = context;
  const { name, namespace } = info;
  const inNamespace = (each: string) => clusterQuotasOf(cache, each).map((quota) => shownIn(kind, each, quota));
  return sendReads(
    context,
    exchange,
    { kind, info },
    {
      fresh: () => cache.freshen(),
      get: () => {
        const found = inNamespace(namespace).find((each) => each.name === name);
        if (found === undefined) throw errors.notFound(kind, name);
        return found;
      },
      list: () => {
        const names = namespace === '' ? [...cache.kind('namespaces')].map((each) => each.name) : [namespace];
        return names.flatMap(inNamespace);
      },
    },
  );
}

function shownIn({ apiVersion, kind }: ServedKind, namespace: string, quota: ClusterResourceQuota): CachedObject {
  const metadata = { ...quota.metadata, namespace };
  const text = JSON.stringify({ ...quota, kind, apiVersion, metadata });
  return new CachedObject(namespace, quota.metadata?.name ?? '', Buffer.from(text), 0, 0);
}

/**
 * GET and LIST of AppliedClusterResourceQuotas: the ClusterResourceQuotas that select a project. Source:
 * openshift/openshift-apiserver pkg/quota/apiserver/registry/appliedclusterresourcequota.
 */
import type { ClusterResourceQuota } from '../../api/kinds/cluster/clusterresourcequotas/index.ts';
import { errors } from '../../api/meta/status.ts';
import { clusterQuotasOf } from '../admission/quota/index.ts';
import type { Exchange } from '../http/exchange.ts';
import { negotiate, negotiateList } from '../http/negotiate.ts';
import type { ResourceRequestInfo } from '../http/request-info.ts';
import type { ServedKind } from '../pipeline/kinds.ts';
import { methodNotAllowed } from '../pipeline/write-request.ts';
import type { ReadContext } from '../rest/context.ts';
import { sendObject } from '../rest/reads/get.ts';
import { sendComputed } from '../rest/reads/list.ts';
import { matcherOf, parseListOptions } from '../rest/reads/list-options.ts';
import { CachedObject } from '../watch-cache/cached-object.ts';

export const isAppliedQuota = ({ kind, group }: ServedKind): boolean =>
  kind === 'AppliedClusterResourceQuota' && group === 'quota.openshift.io';

export async function appliedQuotas(
  context: ReadContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
): Promise<void> {
  const { verb, name, namespace } = info;
  if (verb !== 'get' && verb !== 'list') throw methodNotAllowed();
  const { accept } = exchange.request.headers;
  const form = verb === 'get' ? negotiate(accept, { protobuf: false }) : negotiateList(accept, { protobuf: false });
  const options = verb === 'get' ? undefined : parseListOptions(kind, info.query);
  await context.cache.freshen();
  const inNamespace = (each: string) => clusterQuotasOf(context.cache, each).map((quota) => shownIn(kind, each, quota));
  if (options === undefined) {
    const found = inNamespace(namespace).find((each) => each.name === name);
    if (found === undefined) throw errors.notFound(kind, name);
    sendObject(context, exchange, kind, found, form, 200);
    return;
  }
  const names = namespace === '' ? [...context.cache.kind('namespaces')].map((each) => each.name) : [namespace];
  const matches = matcherOf(kind, options) ?? (() => true);
  await sendComputed(context, exchange, kind, form, names.flatMap(inNamespace).filter(matches));
}

function shownIn({ apiVersion, kind }: ServedKind, namespace: string, quota: ClusterResourceQuota): CachedObject {
  const metadata = { ...quota.metadata, namespace };
  const text = JSON.stringify({ ...quota, kind, apiVersion, metadata });
  return new CachedObject(namespace, quota.metadata?.name ?? '', Buffer.from(text), 0, 0);
}

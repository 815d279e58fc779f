/** Routes a request for a resource to its handler. */
import { ApiError, errors } from '../../api/meta/status.ts';
import { appliedQuotas, isAppliedQuota } from '../computed-resources/applied-quotas.ts';
import { checkProjectRequest, review } from '../computed-resources/handler.ts';
import { isStreamView, streamView } from '../computed-resources/image-streams/handler.ts';
import { streamSubresource } from '../computed-resources/image-streams/subresources.ts';
import { isPackageManifest, packageManifests } from '../computed-resources/package-manifests.ts';
import { isResourceMetrics, resourceMetrics } from '../computed-resources/resource-metrics/handler.ts';
import type { Exchange } from '../http/exchange.ts';
import type { ResourceRequestInfo } from '../http/request-info.ts';
import { deprecationWarning, type ServedKind } from '../pipeline/kinds.ts';
import { methodNotAllowed } from '../pipeline/write-request.ts';
import { sendRecordings, stream, switchRig } from '../streaming/index.ts';
import type { RestContext } from './context.ts';
import { isOwnUserRequest, ownUser } from './own-user.ts';
import { get } from './reads/get.ts';
import { serveList } from './reads/list.ts';
import { noSuchResource, servedAt } from './reads/served-at.ts';
import { bind, evict, token } from './subresources/handlers.ts';
import { strategyAt } from './subresources/strategies.ts';
import { watch } from './watches/watch.ts';
import { changeScale, getScale, putScale } from './writes/scale.ts';
import { create, patch, remove, removeCollection, update } from './writes/write-handlers.ts';

type Handler = (
  context: RestContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
) => Promise<void> | undefined;

/** Handlers of requests for objects and collections, by verb. */
const HANDLERS: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ['get', get],
  ['list', serveList],
  ['watch', watchByGet],
  ['create', create],
  ['update', update],
  ['patch', patch],
  ['delete', remove],
  ['deletecollection', removeCollection],
]);

interface ExtraSubresource {
  accepts(verb: string, method: string | undefined): boolean;
  readonly handler: Handler;
}

const isCreate = (verb: string): boolean => verb === 'create';
const openStream: Handler = (context, exchange, _kind, info) => stream(context, exchange, info);
/** Streams accept the verbs get and create only. */
const interactive: ExtraSubresource = {
  accepts: (verb) => verb === 'get' || verb === 'create',
  handler: openStream,
};
const ofImageStream: ExtraSubresource = {
  accepts: () => true,
  handler: (context, exchange, _kind, info) => streamSubresource(context, exchange, info),
};

/** Sub-resources without a strategy. A kind serves those that its definition names. */
const EXTRA_SUBRESOURCES: ReadonlyMap<string, ExtraSubresource> = new Map<string, ExtraSubresource>([
  ['binding', { accepts: isCreate, handler: bind }],
  ['eviction', { accepts: isCreate, handler: evict }],
  ['token', { accepts: isCreate, handler: token }],
  ['log', { accepts: (_verb, method) => method === 'GET', handler: openStream }],
  ['power', { accepts: isCreate, handler: (context, exchange, _kind, info) => switchRig(context, exchange, info) }],
  [
    'recordings',
    {
      accepts: (verb, method) => verb === 'get' && method === 'GET',
      handler: (context, exchange, _kind, info) => sendRecordings(context, exchange, info),
    },
  ],
  ['exec', interactive],
  ['attach', interactive],
  ['console', interactive],
  ['portforward', interactive],
  ['layers', ofImageStream],
  ['secrets', ofImageStream],
  ['proxy', { accepts: () => true, handler: openStream }],
]);

/** Handles the request synchronously if possible; otherwise resolves when the response is complete. */
export function dispatch(
  context: RestContext,
  exchange: Exchange,
  info: ResourceRequestInfo,
): Promise<void> | undefined {
  const kind = servedAt(context.kinds, info);
  const { subresource, verb } = info;
  const { custom, deprecation } = kind.definition;
  const warning = custom?.deprecation ?? (kind.alias === undefined ? deprecation : undefined);
  if (warning !== undefined) exchange.warnings.push(warning);
  if ((kind.alias ?? kind.definition).deprecated !== undefined) exchange.warnings.push(deprecationWarning(kind));
  if (subresource !== '') return dispatchSubresource(context, exchange, kind, info);
  if (custom === undefined) {
    if (isAppliedQuota(kind)) return appliedQuotas(context, exchange, kind, info);
    if (isPackageManifest(kind)) return packageManifests(context, exchange, kind, info);
    if (isResourceMetrics(kind)) return resourceMetrics(context, exchange, kind, info);
    if (isStreamView(kind)) return streamView(context, exchange, kind, info);
  }
  if (kind.definition.isComputed === true) {
    // Virtual kinds support only create (and ProjectRequest list). They have no paths with a name.
    if (info.name !== '') throw noSuchResource();
    if (verb === 'list' && kind.kind === 'ProjectRequest') return checkProjectRequest(context, exchange);
    if (verb !== 'create') throw methodNotAllowed();
    return review(context, exchange, kind, info);
  }
  if (custom === undefined && isOwnUserRequest(kind, info)) return ownUser(context, exchange, kind, info);
  if (!kind.presented.verbs.some((each) => each === verb)) throw notAllowed(kind, verb);
  // As upstream, HEAD is routed only for custom resources, although it is authorized as a get.
  if (exchange.request.method === 'HEAD' && kind.definition.custom === undefined) throw methodNotAllowed();
  // Update and patch need a name.
  if (info.name === '' && (verb === 'update' || verb === 'patch')) throw methodNotAllowed();
  const handler = HANDLERS.get(verb);
  if (handler === undefined) throw methodNotAllowed();
  return handler(context, exchange, kind, info);
}

function watchByGet(...request: Parameters<Handler>): ReturnType<Handler> {
  const [, exchange] = request;
  // The deprecated `/watch/` path determines the verb whatever the method is.
  if (exchange.request.method !== 'GET') throw methodNotAllowed();
  return watch(...request);
}

/**
 * Error for a verb that the kind does not support. For a custom resource, the error names the resource. Source:
 * k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go.
 */
function notAllowed({ definition, group, plural }: ServedKind, verb: string): ApiError {
  if (definition.custom === undefined) return methodNotAllowed();
  const message = `${verb} is not supported on resources of kind ${JSON.stringify(`${plural}.${group}`)}`;
  return new ApiError('MethodNotAllowed', message, { group, kind: plural });
}

function dispatchSubresource(
  context: RestContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
): Promise<void> | undefined {
  const { subresource, verb } = info;
  if (subresource === 'scale' && kind.definition.scale !== undefined) {
    const { scale } = kind.definition;
    if (verb === 'get') return getScale(context, exchange, kind, info, scale);
    if (verb === 'update') return putScale(context, exchange, kind, info, scale);
    if (verb === 'patch') return changeScale(context, exchange, kind, info, scale);
    throw notAllowed(kind, verb);
  }
  if (strategyAt(kind, subresource) !== undefined) {
    if (verb === 'get') return get(context, exchange, kind, info);
    if (verb === 'update') return update(context, exchange, kind, info);
    if (verb === 'patch') return patch(context, exchange, kind, info);
    throw notAllowed(kind, verb);
  }
  if (kind.definition.custom !== undefined) throw errors.notFound(kind, info.name);
  if (!(kind.definition.extraSubresources ?? []).some((each) => each.name === subresource)) throw noSuchResource();
  const extra = EXTRA_SUBRESOURCES.get(subresource);
  if (extra === undefined) throw noSuchResource();
  if (!extra.accepts(verb, exchange.request.method)) throw methodNotAllowed();
  return extra.handler(context, exchange, kind, info);
}

/** Finds the served kind of a request. */
import { ApiError } from '../../../api/meta/status.ts';
import type { ResourceRequestInfo } from '../../http/request-info.ts';
import type { Kinds, ServedKind } from '../../pipeline/kinds.ts';
import { methodNotAllowed } from '../../pipeline/write-request.ts';

export const noSuchResource = (): ApiError =>
  new ApiError('NotFound', 'the server could not find the requested resource', {});

/**
 * The kind of a request. Throws 'NotFound' if no such kind is served or the path has the wrong scope: a cluster-scoped
 * resource below a namespace, or a namespaced object without a namespace. Source:
 * k8s.io/apiserver/pkg/endpoints/installer.go.
 */
export function servedAt(kinds: Pick<Kinds, 'at'>, info: ResourceRequestInfo): ServedKind {
  const kind = kinds.at(info.group, info.version, info.plural);
  if (kind === undefined) throw noSuchResource();
  const { namespaced, custom } = kind.definition;
  if (info.tail !== '' && info.tail !== '/' && info.subresource !== 'proxy') throw noSuchResource();
  // The deprecated `/watch/` path supports no subresources, because a subresource is authorized by the method.
  if (info.verb === 'watch' && info.subresource !== '') throw noSuchResource();
  if (!namespaced && info.inNamespace) throw noSuchResource();
  if (namespaced && !info.inNamespace) {
    const collective = info.name === '' || info.selected;
    if (collective && (info.verb === 'list' || info.verb === 'watch')) return kind;
    // Upstream routes reads of built-in kinds on this path, so other verbs get 405. It has no such route for custom
    // resources.
    const routed = info.verb === 'create' || info.verb === 'deletecollection';
    if (collective && routed && custom === undefined) throw methodNotAllowed();
    throw noSuchResource();
  }
  return kind;
}

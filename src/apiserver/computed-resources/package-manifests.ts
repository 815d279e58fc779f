/**
 * GET and LIST of PackageManifests. A namespace contains the packages of its own catalogs and of the global catalogs.
 * Source: operator-lifecycle-manager pkg/package-server/storage.
 */

import { errors } from '../../api/meta/status.ts';
import { catalogPackages, GLOBAL_CATALOG_NAMESPACE } from '../../openshift/operators/olm/kinds/packages.ts';
import type { CatalogPackage } from '../../openshift/operators/olm/kinds/types.ts';
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

export const isPackageManifest = ({ kind, group }: ServedKind): boolean =>
  kind === 'PackageManifest' && group === 'packages.operators.coreos.com';

/** Orders packages by descending priority of the catalog, then by the name of the catalog, like the resolver. */
const byCatalog = (a: CatalogPackage, b: CatalogPackage): number =>
  (b.priority ?? 0) - (a.priority ?? 0) || (catalogOf(a) < catalogOf(b) ? -1 : catalogOf(a) > catalogOf(b) ? 1 : 0);

const catalogOf = ({ manifest }: CatalogPackage): string => manifest?.catalogSource ?? '';

export async function packageManifests(
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
  const stored = [...context.cache.kind(catalogPackages.storagePrefix)];
  const visible = stored.filter(
    (each) => namespace === '' || each.namespace === namespace || each.namespace === GLOBAL_CATALOG_NAMESPACE,
  );
  if (options === undefined) {
    const found = visible
      .map((each) => each.shared<CatalogPackage>())
      .filter(({ manifest }) => manifest?.packageName === name)
      .sort(byCatalog)[0];
    if (found === undefined) throw errors.notFound(kind, name);
    sendObject(context, exchange, kind, shownIn(kind, namespace, found), form, 200);
    return;
  }
  const matches = matcherOf(kind, options) ?? (() => true);
  const shown = visible.map((each) => shownIn(kind, namespace, each.shared<CatalogPackage>())).filter(matches);
  await sendComputed(context, exchange, kind, form, shown);
}

/** In a list of all namespaces, a package appears in the namespace of its catalog. */
function shownIn({ apiVersion, kind }: ServedKind, requested: string, stored: CatalogPackage): CachedObject {
  const { manifest, labels } = stored;
  const namespace = requested === '' ? (manifest?.catalogSourceNamespace ?? '') : requested;
  const name = manifest?.packageName ?? '';
  const { creationTimestamp } = stored.metadata ?? {};
  const text = JSON.stringify({
    kind,
    apiVersion,
    metadata: { name, namespace, ...(creationTimestamp === undefined ? {} : { creationTimestamp }), labels },
    spec: {},
    status: manifest,
  });
  return new CachedObject(namespace, name, Buffer.from(text), 0, 0);
}

/**
 * GET and LIST of PackageManifests. A namespace contains the packages of its own catalogs and of the global catalogs.
 * Source: operator-lifecycle-manager pkg/package-server/storage.
 */

import { errors } from '../../api/meta/status.ts';
import { catalogPackages, GLOBAL_CATALOG_NAMESPACE } from '../../openshift/operators/olm/kinds/packages.ts';
import type { CatalogPackage } from '../../openshift/operators/olm/kinds/types.ts';
import type { Exchange } from '../http/exchange.ts';
import type { ResourceRequestInfo } from '../http/request-info.ts';
import type { ServedKind } from '../pipeline/kinds.ts';
import type { ReadContext } from '../rest/context.ts';
import { CachedObject } from '../watch-cache/cached-object.ts';
import { sendReads } from './computed-reads.ts';

export const isPackageManifest = ({ kind, group }: ServedKind): boolean =>
  kind === 'PackageManifest' && group === 'packages.operators.coreos.com';

/** Orders packages by descending priority of the catalog, then by the name of the catalog, like the resolver. */
const byCatalog = (a: CatalogPackage, b: CatalogPackage): number =>
  (b.priority ?? 0) - (a.priority ?? 0) || (catalogOf(a) < catalogOf(b) ? -1 : catalogOf(a) > catalogOf(b) ? 1 : 0);

const catalogOf = ({ manifest }: CatalogPackage): string => manifest?.catalogSource ?? '';

export function packageManifests(
  context: ReadContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
): Promise<void> {
  const { cache } = context;
  const { name, namespace } = info;
  const packages = (): Readonly<CatalogPackage>[] =>
    [...cache.kind(catalogPackages.storagePrefix)]
      .filter((each) => namespace === '' || each.namespace === namespace || each.namespace === GLOBAL_CATALOG_NAMESPACE)
      .map((each) => each.shared<CatalogPackage>());
  return sendReads(
    context,
    exchange,
    { kind, info },
    {
      fresh: () => cache.freshen(),
      get: () => {
        const [found] = packages()
          .filter(({ manifest }) => manifest?.packageName === name)
          .sort(byCatalog);
        if (found === undefined) throw errors.notFound(kind, name);
        return shownIn(kind, namespace, found);
      },
      list: () => packages().map((each) => shownIn(kind, namespace, each)),
    },
  );
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

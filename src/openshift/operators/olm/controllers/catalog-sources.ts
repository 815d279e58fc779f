/**
 * Reads catalogs, reports the result in the status of CatalogSources, and publishes the packages that can be installed.
 */

import { splitKey } from '../../../../api/meta/object.ts';
import { isApiError } from '../../../../api/meta/status.ts';
import { resources } from '../../../../api/resources.ts';
import { CodedError, messageOf } from '../../../../base/errors.ts';
import { parseDuration } from '../../../../base/time/duration.ts';
import { digestOf, manifestLabels, manifestOf } from '../core/index.ts';
import type { CatalogPackage, CatalogSource, CatalogSourceStatus } from '../kinds/types.ts';
import { CatalogCopies } from './catalog-copies.ts';
import { placeOf } from './catalog-place.ts';
import type { LoadedCatalog } from './catalog-store.ts';
import type { Olm, Wakes } from './context.ts';

/** Polling interval of a catalog. A check costs a few file system calls or one request. */
const CHECK_MS = 10_000;
const DIGEST = 'olm.hyperedge.dev/digest';
const MAX_NAME = 253;

interface Outcome {
  readonly status: CatalogSourceStatus;
  readonly changed: boolean;
}

export class CatalogSourcePart {
  readonly #olm: Olm;
  readonly #wakes: Wakes;
  readonly #copies: CatalogCopies;
  readonly #published = new Map<string, string>();

  constructor(olm: Olm, wakes: Wakes) {
    this.#olm = olm;
    this.#wakes = wakes;
    this.#copies = new CatalogCopies(olm);
  }

  /** Returns the milliseconds until the next check, or undefined if the CatalogSource no longer exists. */
  async reconcile(key: string): Promise<number | undefined> {
    const { catalogs, informers } = this.#olm;
    const source = informers.catalogSources.get(key);
    if (source === undefined || source.metadata?.deletionTimestamp !== undefined) {
      this.#published.delete(key);
      // The published packages have an owner reference to the CatalogSource, so garbage collection deletes them.
      if (catalogs.forget(key)) this.#wakes.allNamespaces();
      await this.#copies.forgetUnused();
      return undefined;
    }
    const { status, changed } = await this.#read(key, source);
    const loaded = catalogs.get(key);
    if (loaded !== undefined) await this.#publish(key, source, loaded);
    await this.#report(source, status, changed);
    if (changed) this.#wakes.allNamespaces();
    return parseDuration(source.spec?.updateStrategy?.registryPoll?.interval ?? '') ?? CHECK_MS;
  }

  async #read(key: string, source: CatalogSource): Promise<Outcome> {
    const { handle, catalogs, now } = this.#olm;
    const before = source.status?.connectionState;
    const copies = await this.#copies.compare(source);
    const conditions = copies === undefined ? {} : { conditions: [copies] };
    try {
      const reference = await this.#load(key, source);
      const loaded = catalogs.get(key);
      const connected = before?.lastObservedState === 'READY' && !reference.changed;
      return {
        changed: reference.changed,
        status: {
          ...(reference.configMap === undefined ? {} : { configMapReference: reference.configMap }),
          connectionState: {
            address: loaded?.address ?? '',
            lastObservedState: 'READY',
            lastConnect: connected ? (before.lastConnect ?? now()) : now(),
          },
          ...problemsOf(loaded),
          ...conditions,
        },
      };
    } catch (error) {
      if (!(error instanceof CodedError)) throw error;
      handle.log.v(2, 'catalog not read', { catalog: key, error: messageOf(error) });
      const lost = catalogs.fail(key, messageOf(error));
      return {
        changed: lost,
        status: {
          reason: source.spec?.configMap === undefined ? 'RegistryServerError' : 'ConfigMapError',
          message: messageOf(error),
          ...conditions,
          connectionState: {
            ...(source.spec?.address === undefined ? {} : { address: source.spec.address }),
            lastObservedState: 'TRANSIENT_FAILURE',
            ...(before?.lastConnect === undefined ? {} : { lastConnect: before.lastConnect }),
          },
        },
      };
    }
  }

  async #load(key: string, source: CatalogSource) {
    const { catalogs, handle, now } = this.#olm;
    const { spec = {} } = source;
    if (spec.sourceType !== 'grpc') {
      const name = spec.configMap ?? '';
      const namespace = source.metadata?.namespace ?? '';
      const found = await handle
        .writer(resources.configMaps)
        .get(name, namespace)
        .catch((error: unknown) => {
          if (isApiError(error, 'NotFound'))
            throw new CodedError('catalog', `configmap ${namespace}/${name} not found`);
          throw error;
        });
      const { uid = '', resourceVersion = '' } = found.metadata ?? {};
      const changed = await catalogs.loadConfigMap(key, `${uid}:${resourceVersion}`, found.data ?? {});
      const before = source.status?.configMapReference;
      const lastUpdateTime = changed ? now() : (before?.lastUpdateTime ?? now());
      return { changed, configMap: { name, namespace, uid, resourceVersion, lastUpdateTime } };
    }
    return { changed: await catalogs.loadPlace(key, placeOf(source)), configMap: undefined };
  }

  async #report(source: CatalogSource, status: CatalogSourceStatus, changed: boolean): Promise<void> {
    if (!changed && JSON.stringify(source.status ?? {}) === JSON.stringify(status)) return;
    const client = this.#olm.handle.writer(resources.catalogSources);
    await client.update({ ...source, status }, { subresource: 'status' });
    this.#wakes.allNamespaces();
  }

  /** Writes a CatalogPackage for each package and deletes the CatalogPackages of removed packages. */
  async #publish(key: string, source: CatalogSource, loaded: LoadedCatalog): Promise<void> {
    const mark = `${loaded.stamp} ${digestOf(source.spec ?? {})}`;
    if (this.#published.get(key) === mark) return;
    const { handle } = this.#olm;
    const client = handle.writer(resources.catalogPackages);
    const { namespace } = splitKey(key);
    const labels = manifestLabels(source);
    const selector = `catalog=${labels['catalog']}`;
    const present = await client.list({ ...(namespace === undefined ? {} : { namespace }), labelSelector: selector });
    const stored = new Map(present.items.map((each) => [each.metadata?.name ?? '', each]));
    for (const owner of loaded.catalog.packages.values()) {
      const name = `${source.metadata?.name}.${owner.name}`.slice(0, MAX_NAME);
      const heads = new Map<string, unknown>();
      for (const { head } of owner.channels) {
        const bundle = owner.bundles.get(head);
        if (bundle !== undefined && !heads.has(head)) heads.set(head, await this.#olm.catalogs.metadata(key, bundle));
      }
      const manifest = manifestOf(owner, source, heads);
      const found = stored.get(name);
      stored.delete(name);
      const digest = digestOf({ manifest, priority: source.spec?.priority ?? 0 });
      if (found?.metadata?.annotations?.[DIGEST] === digest) continue;
      const object: CatalogPackage = {
        metadata: {
          ...found?.metadata,
          name,
          ...(namespace === undefined ? {} : { namespace }),
          labels: { catalog: labels['catalog'] ?? '' },
          annotations: { [DIGEST]: digest },
          ownerReferences: [
            {
              apiVersion: 'operators.coreos.com/v1alpha1',
              kind: 'CatalogSource',
              name: source.metadata?.name ?? '',
              uid: source.metadata?.uid ?? '',
            },
          ],
        },
        labels,
        priority: source.spec?.priority ?? 0,
        manifest,
      };
      if (found === undefined) await client.create(object);
      else await client.update(object);
    }
    for (const each of stored.values()) await client.delete(each.metadata?.name ?? '', namespace);
    this.#published.set(key, mark);
  }
}

function problemsOf(loaded: LoadedCatalog | undefined): { readonly message?: string; readonly reason?: string } {
  const problems = loaded?.catalog.problems ?? [];
  return problems.length === 0
    ? {}
    : { reason: 'SpecInvalidError', message: `packages left out: ${problems.join('; ')}`.slice(0, 4096) };
}

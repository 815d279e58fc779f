/** Components of the API server that need the configuration, the store or the watch cache, and no other component. */

import type { KubeObject } from '../../api/meta/object.ts';
import type { Clock, RandomSource } from '../../base/time/clock.ts';
import type { QuotaStore } from '../admission/quota/accessor.ts';
import { ServiceAccountTokens } from '../authentication/service-accounts.ts';
import { rememberGroup } from '../bootstrap/deleted-nodes.ts';
import { ensureObject } from '../bootstrap/index.ts';
import { SoleWriter } from '../bootstrap/sole-writer.ts';
import type { ApiServerConfig } from '../config/server-config.ts';
import { EncryptedStore } from '../encryption/encrypted-store.ts';
import { createResourceOf } from '../encryption/stored-resources.ts';
import { cacheOptions, type Kinds } from '../pipeline/kinds.ts';
import type { ServerContext } from '../rest/context.ts';
import { ExpiryLeases } from '../storage/expiry-leases.ts';
import { ObjectStore } from '../storage/object-store.ts';
import { ServiceAllocator } from '../storage/service-allocator.ts';
import { StoreMetrics } from '../storage/store-metrics.ts';
import { StoredForms } from '../storage/stored-representations.ts';
import { WatchCache } from '../watch-cache/watch-cache.ts';
import type { ApiServerDeps } from './deps.ts';
import { Destinations } from './destinations.ts';
import type { Metrics } from './metrics.ts';
import { reloadMetrics } from './reload-metrics.ts';

const DEFAULT_NODE_PORTS = [30000, 32767] as const;

/** Reads and writes of the store that admission plug-ins need. */
export function admissionStore(context: () => ServerContext) {
  return {
    createNamespace: (name: string) => ensureObject(context(), 'namespaces', '', { metadata: { name } }),
    rememberGroup: (node: KubeObject, group: string) => rememberGroup(context(), node, group),
    storedNamespace: (name: string) => {
      const { definition } = context().kinds.stored('namespaces', '');
      return context().objects.readStored({ definition, namespace: '', name });
    },
  };
}

export function quotaStore(cache: WatchCache, objects: ObjectStore, kinds: Kinds): QuotaStore {
  const { definition } = kinds.stored('resourcequotas', '');
  const quotas = cache.kind('resourcequotas');
  return {
    cached: (namespace) => (quotas.size === 0 ? [] : quotas.list(namespace)),
    stored: (namespace, name) => objects.readStored({ definition, namespace, name }),
    replace: (changes) =>
      objects.updateAll(
        changes.map(({ previous, object }) => ({
          place: { definition, namespace: previous.namespace, name: previous.name },
          previous,
          object,
        })),
      ),
  };
}

/** Creates the store with encryption and format conversion, the watch cache, and the object store with its metrics. */
export function assembleStorage(deps: ApiServerDeps, metrics: Metrics) {
  const { clock, config, log } = deps;
  const encrypted =
    deps.encryption === undefined
      ? undefined
      : new EncryptedStore({
          store: deps.store,
          source: deps.encryption,
          resourceOf: createResourceOf(),
          log,
          nowMs: () => clock.monotonicMs(),
        });
  const store = new StoredForms(encrypted ?? deps.store, log);
  const soleWriter = new SoleWriter({
    store,
    clock,
    log,
    identity: `${config.advertiseAddress}:${config.advertisePort ?? config.port}`,
    advertiseAddress: config.advertiseAddress,
    mayClaim: config.soleWriter,
  });
  const cache = new WatchCache({ store, clock, log, soleWriter: () => soleWriter.current }, cacheOptions());
  const operations = new StoreMetrics();
  const isStale = (key: string): boolean => encrypted?.isStale(key) ?? false;
  const objects = new ObjectStore(store, cache, new ExpiryLeases(store, clock), isStale, {
    nowMs: () => clock.monotonicMs(),
    observe: (...figures) => operations.observe(...figures),
  });
  metrics.addGauge(() => operations.render());
  return { encrypted, store, cache, objects, soleWriter };
}

export function serviceAccountTokens(
  { serviceAccounts }: ApiServerConfig,
  cache: WatchCache,
  clock: Clock,
  noteUse: (namespace: string, secret: string, day: string) => void,
): ServiceAccountTokens {
  return new ServiceAccountTokens({
    signingKey: serviceAccounts.signingKey,
    publicKeys: serviceAccounts.publicKeys,
    issuers: [serviceAccounts.issuer, ...(serviceAccounts.otherIssuers ?? [])],
    audiences: serviceAccounts.audiences ?? [serviceAccounts.issuer],
    cache,
    nowMs: () => clock.nowMs(),
    noteUse,
  });
}

export function countReloads({ config, identities, authorizers, encryption }: ApiServerDeps, metrics: Metrics): void {
  const followed = { authentication: identities, authorization: authorizers, encryption };
  for (const what of ['authentication', 'authorization', 'encryption'] as const) {
    const { [what]: source } = followed;
    if (source?.reloads === undefined) continue;
    const server = `apiserver-${config.advertiseAddress}`;
    metrics.addGauge(() => (source.reloads === undefined ? '' : reloadMetrics(what, source.reloads, server)));
  }
}

export function serviceAllocator(
  config: ApiServerConfig,
  cidr: string,
  cache: WatchCache,
  clock: Clock,
  random: RandomSource,
): ServiceAllocator {
  return new ServiceAllocator({
    cidr,
    ranges: () => cache.kind('servicecidrs'),
    ports: config.nodePortRange ?? DEFAULT_NODE_PORTS,
    services: () => cache.kind('services/specs'),
    addresses: () => cache.kind('ipaddresses'),
    clock,
    random,
  });
}

export function requestDestinations(deps: ApiServerDeps, cache: WatchCache, serviceRange: string): Destinations {
  const { config } = deps;
  return new Destinations({
    cache,
    advertiseAddress: config.advertiseAddress,
    ports: [config.port, config.advertisePort ?? config.port],
    serviceRange,
    ownAddresses: deps.ownAddresses ?? (() => []),
  });
}

/**
 * Registered groups and versions and the servers that serve them, from the APIServices in the watch cache. Every API
 * server of the cluster therefore delegates the same groups. Source: k8s.io/kube-aggregator/pkg/apiserver.
 */
import type { GroupVersion } from '../../api/discovery/index.ts';
import type { Priority } from '../../api/discovery/priorities.ts';
import { type APIService, availableCondition, DEFAULT_PORT } from '../../api/kinds/cluster/apiservices/conditions.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { CertificateSettings, Followed } from '../config/server-config.ts';
import type { BackendConnector, BackendTls } from '../port.ts';
import type { CachedObject } from '../watch-cache/cached-object.ts';
import type { WatchCache } from '../watch-cache/watch-cache.ts';

/** Storage prefix of APIServices. */
export const API_SERVICES = 'apiregistration.k8s.io/apiservices';

/** Service to which a group and version are delegated. */
export interface ServiceAddress {
  readonly namespace: string;
  readonly name: string;
  readonly port: number;
}

export interface Registered extends GroupVersion {
  readonly name: string;
  readonly priority: Priority;
  /** Service that serves the group. Undefined if this server serves the group itself. */
  readonly service: ServiceAddress | undefined;
  readonly available: boolean;
  /** TLS settings of the proxy: trusted authority and client certificate. */
  readonly tls: BackendTls;
  /** Serialized specification, for comparison. */
  readonly specText: string;
  readonly object: CachedObject;
}

/** A group and version that another server serves. */
export interface Delegated extends Registered {
  readonly service: ServiceAddress;
}

export interface ApiServicesDeps {
  readonly cache: WatchCache;
  readonly log: Log;
  /** Client certificate for connections to aggregated servers. */
  readonly certificates: Followed<Pick<CertificateSettings, 'proxyClient'>>;
  readonly backends: Pick<BackendConnector, 'publicAuthorities'>;
}

const isDelegated = (each: Registered): each is Delegated => each.service !== undefined;

export class ApiServices {
  readonly #deps: ApiServicesDeps;
  readonly #byName = new Map<string, Registered>();
  readonly #listeners: ((name: string) => void)[] = [];
  #delegated: readonly Delegated[] | undefined;
  #generation = 0;
  #unsubscribe: (() => void) | undefined;

  constructor(deps: ApiServicesDeps) {
    this.#deps = deps;
  }

  /** Follows the watch cache, which must be loaded. */
  start(): void {
    const { cache } = this.#deps;
    const kind = cache.kind(API_SERVICES);
    this.#unsubscribe = kind.subscribe(
      {
        deliver: (batch) => {
          for (const { type, object } of batch.events) this.#take(object, { gone: type === 'DELETED' });
        },
        // After a reload the list is rebuilt, which also finds deletions.
        reset: () => queueMicrotask(() => this.start()),
      },
      undefined,
      cache.revision,
    );
    for (const { object } of [...this.#byName.values()]) {
      if (kind.get('', object.name) === undefined) this.#take(object, { gone: true });
    }
    for (const object of kind)
      if (this.#byName.get(object.name)?.object !== object) this.#take(object, { gone: false });
  }

  stop(): void {
    this.#unsubscribe?.();
  }

  /** Makes new connections to aggregated servers use the current client certificate. */
  renewCredentials(): void {
    for (const each of this.#byName.values()) {
      this.#byName.set(each.name, { ...each, tls: this.#tlsOf(each.object.parse<APIService>().spec) });
    }
    this.#delegated = undefined;
  }

  /**
   * Calls `listener` synchronously with the name of each added, changed or deleted APIService. The listener must not
   * block.
   */
  onChange(listener: (name: string) => void): void {
    this.#listeners.push(listener);
  }

  /** Changes with every change of an APIService. */
  get generation(): number {
    return this.#generation;
  }

  get(name: string): Registered | undefined {
    return this.#byName.get(name);
  }

  get all(): readonly Registered[] {
    return [...this.#byName.values()];
  }

  get delegated(): readonly Delegated[] {
    this.#delegated ??= this.all.filter(isDelegated);
    return this.#delegated;
  }

  /** The server of a group and version; undefined if this server serves it. */
  delegate(group: string, version: string): Delegated | undefined {
    const found = this.#byName.get(`${version}.${group}`);
    return found !== undefined && isDelegated(found) ? found : undefined;
  }

  #take(object: CachedObject, { gone }: { readonly gone: boolean }): void {
    try {
      if (gone) this.#byName.delete(object.name);
      else this.#byName.set(object.name, this.#read(object));
    } catch (error) {
      this.#deps.log.error('cannot decode an APIService', { name: object.name, error: messageOf(error) });
      return;
    }
    this.#generation += 1;
    this.#delegated = undefined;
    for (const listener of this.#listeners) listener(object.name);
  }

  #read(object: CachedObject): Registered {
    const service = object.parse<APIService>();
    const { spec } = service;
    const reference = spec?.service;
    const known = this.#byName.get(object.name);
    const specText = JSON.stringify(spec);
    return {
      name: object.name,
      group: spec?.group ?? '',
      version: spec?.version ?? '',
      priority: { group: spec?.groupPriorityMinimum ?? 0, version: spec?.versionPriority ?? 0 },
      service:
        reference === undefined
          ? undefined
          : {
              namespace: reference.namespace ?? '',
              name: reference.name ?? '',
              port: reference.port ?? DEFAULT_PORT,
            },
      available: availableCondition(service)?.status === 'True',
      tls: known?.specText === specText ? known.tls : this.#tlsOf(spec),
      specText,
      object,
    };
  }

  #tlsOf(spec: APIService['spec']): BackendTls {
    const { service, caBundle = '', insecureSkipTLSVerify = false } = spec ?? {};
    const trusted =
      caBundle === '' ? this.#deps.backends.publicAuthorities : Buffer.from(caBundle, 'base64').toString('utf8');
    return {
      ...this.#deps.certificates.current.proxyClient,
      serverName: `${service?.name ?? ''}.${service?.namespace ?? ''}.svc`,
      authority: insecureSkipTLSVerify ? undefined : trusted,
    };
  }
}

import type { Endpoints, Service } from '../../api/generated/core/v1.ts';
import type { EndpointSlice } from '../../api/generated/discovery/v1.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import { addressKind } from '../../base/addresses/destinations.ts';
import { storeRevision } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Timer } from '../../base/time/clock.ts';
import { prefixEnd, type StoreWatch } from '../../store/port.ts';
import type { ServerContext, WriteContext } from '../rest/context.ts';
import { ensureObject } from './index.ts';

type MastersContext = WriteContext & Pick<ServerContext, 'log' | 'services' | 'store'>;

const HTTPS_PORT = 443;
/** Prefix of the keys. It is the same as upstream's, so that upstream API servers on the same store take part. */
const PREFIX = '/registry/masterleases/';
const TTL_SECONDS = 15;
const RETRY_MS = 2_000;
/** Limit on waiting for the store at shutdown. */
const FAREWELL_MS = 1_000;

/**
 * Maintains the endpoints of the `kubernetes` service: the addresses of all API servers on this store. Each server
 * announces its address in a key with a store lease. Keep-alives of the lease write nothing. When a server stops or
 * fails, its key disappears and the other servers remove its address. Source: k8s.io/kubernetes
 * pkg/controlplane/reconcilers (lease reconciler).
 */
export class MasterEndpoints {
  readonly #context: MastersContext;
  readonly #ttlSeconds: number;
  #port = 0;
  #lease: string | undefined;
  #watch: StoreWatch | undefined;
  #keeping: Timer | undefined;
  #again: Timer | undefined;
  #publishing: Promise<void> | undefined;
  #wanted = false;
  #stopped = false;
  /** True if other API servers were among the last published addresses. */
  #hasOtherMasters = false;

  /** `ttlSeconds`: how long the address of a failed server stays published. */
  constructor(context: MastersContext, ttlSeconds = TTL_SECONDS) {
    this.#context = context;
    this.#ttlSeconds = ttlSeconds;
  }

  get hasOtherMasters(): boolean {
    return this.#hasOtherMasters;
  }

  get #key(): string {
    return PREFIX + this.#context.config.advertiseAddress;
  }

  /**
   * Announces this server on `port` and publishes all announced servers. Rejects if the store fails, and may then be
   * called again.
   */
  async start(port: number): Promise<void> {
    this.#port = port;
    const { advertiseAddress } = this.#context.config;
    await this.#publishService();
    // Endpoints must not contain loopback addresses. A control plane for tests has only the service.
    if (addressKind(advertiseAddress) === 'loopback') return;
    await this.#announce();
    await this.#publish();
    this.#keepAlive();
  }

  /** Withdraws this server's address, if the store responds within a second. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#keeping?.cancel();
    this.#again?.cancel();
    this.#watch?.cancel();
    if (this.#lease === undefined) return;
    const { store, clock, log } = this.#context;
    await new Promise<void>((resolve) => {
      const timer = clock.setTimer(FAREWELL_MS, resolve);
      store
        .commit({ guards: [], deletes: [this.#key] })
        .catch((error: unknown) => log.v(2, 'cannot delete the master lease; it expires', { cause: messageOf(error) }))
        .finally(() => {
          timer.cancel();
          resolve();
        });
    });
  }

  async #announce(): Promise<void> {
    const { store, config } = this.#context;
    const lease = await store.grantLease(this.#ttlSeconds);
    const announcement: Endpoints = {
      kind: 'Endpoints',
      apiVersion: 'v1',
      metadata: { name: config.advertiseAddress },
      subsets: [{ addresses: [{ ip: config.advertiseAddress }] }],
    };
    const value = Buffer.from(JSON.stringify(announcement));
    await store.commit({ guards: [], puts: [{ key: this.#key, value, lease }] });
    this.#lease = lease;
  }

  #keepAlive(): void {
    this.#keeping?.cancel();
    if (this.#stopped) return;
    this.#keeping = this.#context.clock.setTimer((this.#ttlSeconds * 1000) / 3, () => {
      void this.#keep().finally(() => this.#keepAlive());
    });
  }

  async #keep(): Promise<void> {
    const { store, log } = this.#context;
    try {
      const alive = this.#lease !== undefined && (await store.keepLease(this.#lease));
      if (!alive && !this.#stopped) await this.#announce();
      if (!this.#stopped) await this.#restore();
    } catch (error) {
      log.v(2, 'cannot renew the master lease; retrying', { cause: messageOf(error) });
    }
  }

  /** Creates the service and its endpoints again if they were deleted. Nothing is written otherwise. */
  async #restore(): Promise<void> {
    const { kinds } = this.#context;
    const isMissing = (plural: string, group: string): boolean => {
      const { cache } = kinds.stored(plural, group);
      return cache !== undefined && cache.get('default', 'kubernetes') === undefined;
    };
    if (isMissing('services', '')) await this.#publishService();
    if (isMissing('endpoints', '') || isMissing('endpointslices', 'discovery.k8s.io')) await this.#publish();
  }

  /**
   * Publishes the announced addresses and follows later changes. Runs one at a time; a call during a run causes another
   * run.
   */
  #publish(): Promise<void> {
    this.#wanted = true;
    this.#publishing ??= this.#publishAnnounced().finally(() => {
      this.#publishing = undefined;
    });
    return this.#publishing;
  }

  async #publishAnnounced(): Promise<void> {
    const { store, config } = this.#context;
    while (this.#wanted && !this.#stopped) {
      this.#wanted = false;
      const { kvs, revision } = await store.range(PREFIX, prefixEnd(PREFIX), { keysOnly: true });
      if (this.#stopped) return;
      const addresses = kvs.map(({ key }) => key.slice(PREFIX.length));
      if (!addresses.includes(config.advertiseAddress)) {
        await this.#announce();
        addresses.push(config.advertiseAddress);
      }
      this.#hasOtherMasters = addresses.length > 1;
      await this.#publishAddresses(addresses.sort());
      if (!this.#stopped) this.#watch ??= this.#follow(revision + 1);
    }
  }

  #follow(fromRevision: number): StoreWatch {
    const changed = (): void => {
      this.#publish().catch((error: unknown) => this.#retry(error));
    };
    return this.#context.store.watch(PREFIX, prefixEnd(PREFIX), storeRevision(fromRevision), {
      events: changed,
      progress: () => {},
      closed: () => {
        this.#watch = undefined;
        changed();
      },
    });
  }

  #retry(error: unknown): void {
    const { clock, log } = this.#context;
    log.v(2, 'cannot publish the endpoints of the API servers; retrying', { cause: messageOf(error) });
    this.#again?.cancel();
    if (this.#stopped) return;
    this.#again = clock.setTimer(RETRY_MS, () => {
      this.#publish().catch((again: unknown) => this.#retry(again));
    });
  }

  async #publishService(): Promise<void> {
    const port = this.#port;
    const service: Service = {
      metadata: {
        name: 'kubernetes',
        namespace: 'default',
        labels: { component: 'apiserver', provider: 'kubernetes' },
      },
      spec: {
        type: 'ClusterIP',
        clusterIP: this.#context.services.firstAddress,
        ports: [{ name: 'https', port: HTTPS_PORT, protocol: 'TCP', targetPort: port }],
        sessionAffinity: 'None',
      },
    };
    await ensureObject(this.#context, 'services', '', service, (stored) => withPort(stored as Service, port));
  }

  async #publishAddresses(addresses: readonly string[]): Promise<void> {
    const metadata = { name: 'kubernetes', namespace: 'default' };
    const ports = [{ name: 'https', port: this.#port, protocol: 'TCP' as const }];
    const endpoints: Endpoints = {
      metadata: { ...metadata, labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } },
      subsets: [{ addresses: addresses.map((ip) => ({ ip })), ports }],
    };
    await ensureObject(
      this.#context,
      'endpoints',
      '',
      endpoints,
      (stored) => ({ ...stored, subsets: endpoints.subsets }) as KubeObject,
    );
    const slice: EndpointSlice = {
      metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'kubernetes' } },
      addressType: this.#context.config.advertiseAddress.includes(':') ? 'IPv6' : 'IPv4',
      endpoints: addresses.map((each) => ({ addresses: [each], conditions: { ready: true } })),
      ports,
    };
    await ensureObject(
      this.#context,
      'endpointslices',
      'discovery.k8s.io',
      slice,
      (stored) => ({ ...stored, endpoints: slice.endpoints, ports }) as KubeObject,
    );
  }
}

function withPort(service: Service, port: number): Service | undefined {
  const [first] = service.spec?.ports ?? [];
  if (first?.targetPort === port && first.port === HTTPS_PORT) return undefined;
  return {
    ...service,
    spec: { ...service.spec, ports: [{ name: 'https', port: HTTPS_PORT, protocol: 'TCP', targetPort: port }] },
  };
}

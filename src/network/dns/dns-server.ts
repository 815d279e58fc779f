/**
 * Cluster DNS of one host: follows services and endpoint slices and listens on the node-local address of the
 * DNS service, for this host and its pods only.
 */
import type { ConfigMap, Service } from '../../api/generated/core/v1.ts';
import type { EndpointSlice } from '../../api/generated/discovery/v1.ts';
import { objectKey } from '../../api/meta/object.ts';
import { resources } from '../../api/resources.ts';
import { isInNetwork } from '../../base/addresses/addresses.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, RandomSource, Timer } from '../../base/time/clock.ts';
import type { InformerFactory } from '../../client/types.ts';
import { ClusterZone, isHeadless } from './core/index.ts';
import { Forwarder, nameOf } from './forwarder.ts';
import type { DnsCodec, DnsListener, DnsSockets, ServiceLink, UpstreamExchange, UpstreamServer } from './port.ts';
import { Responder, type RouteNames } from './responder.ts';
import { CONFIG_NAME, CONFIG_NAMESPACE, clusterConfigOf } from './stub-domains.ts';

export interface DnsConfig {
  /** The cluster's domain in lower case. */
  readonly zone: string;
  /** TTL in seconds of the cluster's own records. */
  readonly ttlSeconds: number;
  /** Cluster IPs of the DNS service, which this host binds itself. */
  readonly addresses: readonly string[];
  readonly port: number;
  /** Address ranges of pods and services. */
  readonly ranges: readonly string[];
  /** Address ranges of pods, which may send queries. */
  readonly podRanges: readonly string[];
  /** All addresses of this host including loopback, which may send queries. */
  readonly hostAddresses: () => readonly string[];
  /** Upstream servers; if undefined, the servers of `hostServers`. */
  readonly upstreams: readonly UpstreamServer[] | undefined;
  readonly stubDomains: ReadonlyMap<string, readonly UpstreamServer[]>;
  readonly routes?: RouteNames | undefined;
}

export interface DnsDeps {
  readonly config: DnsConfig;
  readonly informers: InformerFactory;
  readonly sockets: DnsSockets;
  readonly exchange: UpstreamExchange;
  readonly codec: DnsCodec;
  readonly link: ServiceLink;
  /** Servers in the host's own resolver configuration, with a notification of changes. */
  readonly hostServers: {
    read(): Promise<readonly UpstreamServer[]>;
    onChange(listener: () => void): () => void;
  };
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
}

export interface DnsServer {
  /**
   * Resolves when the server listens, or when the first attempt has failed; the server then retries in the background.
   */
  start(): Promise<void>;
  /**
   * Stops the server. With `keepAddress` the addresses remain during a restart of the host process, so that queries of
   * pods do not leave the host.
   */
  stop(options?: { readonly keepAddress?: boolean }): Promise<void>;
}

const SERVICE_NAME = 'kubernetes.io/service-name';
const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 15_000;
/** Size and lifetime of the cache of client permissions. */
const MAX_SOURCES = 4_096;
const SOURCES_MS = 5_000;

export function createDnsServer(deps: DnsDeps): DnsServer {
  return new ClusterDnsServer(deps);
}

class ClusterDnsServer implements DnsServer {
  readonly #deps: DnsDeps;
  readonly #zone: ClusterZone;
  readonly #forwarder: Forwarder;
  readonly #responder: Responder;
  readonly #slices = new Map<string, Map<string, EndpointSlice>>();
  readonly #closers: (() => void)[] = [];
  readonly #sources = new Map<string, boolean>();
  #sourcesMs = 0;
  #listeners: DnsListener[] = [];
  #clusterConfig: ConfigMap | undefined;
  #reported = '';
  #ready = false;
  #stopped = false;
  #retry: Timer | undefined;

  constructor(deps: DnsDeps) {
    this.#deps = deps;
    const { zone, ttlSeconds, addresses, ranges } = deps.config;
    this.#zone = new ClusterZone(
      { zone, ttl: ttlSeconds, serverAddresses: addresses, ranges },
      Math.floor(deps.clock.nowMs() / 1_000),
    );
    this.#forwarder = new Forwarder(deps);
    this.#responder = new Responder({
      ...deps,
      zone: this.#zone,
      forwarder: this.#forwarder,
      routes: deps.config.routes,
      ready: () => this.#ready,
    });
  }

  async start(): Promise<void> {
    this.#follow();
    await this.#updateUpstreams();
    this.#closers.push(this.#deps.hostServers.onChange(() => void this.#updateUpstreams()));
    await this.#listen(RETRY_MIN_MS);
  }

  async stop(options: { readonly keepAddress?: boolean } = {}): Promise<void> {
    this.#stopped = true;
    this.#retry?.cancel();
    for (const close of this.#closers) close();
    await this.#close();
    if (options.keepAddress !== true) await this.#deps.link.remove();
  }

  async #close(): Promise<void> {
    const listeners = this.#listeners;
    this.#listeners = [];
    await Promise.all(listeners.map((listener) => listener.close()));
  }

  async #listen(retryMs: number): Promise<void> {
    const { config, link, sockets, log, clock } = this.#deps;
    try {
      await link.bind(config.addresses);
      for (const address of config.addresses) {
        if (this.#stopped) return;
        this.#listeners.push(
          await sockets.listen(address, config.port, (message, source, transport) =>
            this.#isPermitted(source) ? this.#responder.answer(message, source, transport) : undefined,
          ),
        );
      }
      if (this.#stopped) await this.#close();
      else log.info('cluster DNS listens', { addresses: config.addresses, port: config.port, zone: config.zone });
    } catch (error) {
      await this.#close();
      if (this.#stopped) return;
      log.error('cluster DNS cannot listen; retrying', {
        addresses: config.addresses,
        port: config.port,
        error: messageOf(error),
        retryMs,
      });
      this.#retry = clock.setTimer(retryMs, () => void this.#listen(Math.min(retryMs * 2, RETRY_MAX_MS)));
    }
  }

  #follow(): void {
    const { informers, log } = this.#deps;
    const services = informers.informer(resources.services, { lastKnown: { set: 'services' } });
    const slices = informers.informer(resources.endpointSlices, { lastKnown: { set: 'endpoint-slices' } });
    const configMaps = informers.informer(resources.configMaps, {
      namespace: CONFIG_NAMESPACE,
      fieldSelector: `metadata.name=${CONFIG_NAME}`,
      lastKnown: { set: 'dns-config' },
    });
    const setService = (service: Service): void => this.#setService(objectKey(service), service);
    const setSlice = (slice: EndpointSlice): void => {
      const key = serviceKeyOf(slice);
      if (key === undefined) return;
      const known = this.#slices.get(key) ?? new Map<string, EndpointSlice>();
      this.#slices.set(key, known.set(objectKey(slice), slice));
      this.#refresh(key, services.get(key));
    };
    const removeSlice = (slice: EndpointSlice): void => {
      const key = serviceKeyOf(slice);
      const known = key === undefined ? undefined : this.#slices.get(key);
      if (key === undefined || known?.delete(objectKey(slice)) !== true) return;
      if (known.size === 0) this.#slices.delete(key);
      this.#refresh(key, services.get(key));
    };
    const setConfig = (object: ConfigMap | undefined): void => {
      this.#clusterConfig = object;
      void this.#updateUpstreams();
    };
    this.#closers.push(
      services.onChange({
        added: setService,
        updated: setService,
        deleted: (service) => {
          if (this.#zone.removeService(objectKey(service))) this.#responder.forget();
        },
      }),
      slices.onChange({
        added: setSlice,
        updated: (slice, old) => {
          if (serviceKeyOf(slice) !== serviceKeyOf(old)) removeSlice(old);
          setSlice(slice);
        },
        deleted: removeSlice,
      }),
      configMaps.onChange({ added: setConfig, updated: setConfig, deleted: () => setConfig(undefined) }),
    );
    for (const informer of [services, slices, configMaps]) informer.start();
    void Promise.all([services.synced, slices.synced]).then(() => {
      this.#ready = true;
      this.#responder.forget();
      log.info('cluster DNS loaded the services', { services: this.#zone.size });
    });
  }

  /** Updates the records of a service after a change of its endpoints, which matters only for headless services. */
  #refresh(key: string, service: Service | undefined): void {
    if (service !== undefined && isHeadless(service)) this.#setService(key, service);
  }

  #setService(key: string, service: Service): void {
    const slices = isHeadless(service) ? [...(this.#slices.get(key)?.values() ?? [])] : [];
    if (this.#zone.setService(service, slices)) this.#responder.forget();
  }

  async #updateUpstreams(): Promise<void> {
    const { config, hostServers, log } = this.#deps;
    const cluster = clusterConfigOf(this.#clusterConfig);
    for (const problem of cluster.problems) log.warn('DNS configuration not used', { problem });
    const chosen =
      cluster.upstreams ??
      config.upstreams ??
      (await hostServers.read().catch((error: unknown) => {
        log.warn('resolver configuration of the host not read', { error: messageOf(error) });
        return [];
      }));
    // A query forwarded to one of the server's own addresses would loop.
    const isOwn = ({ address, port }: UpstreamServer): boolean =>
      port === config.port && config.addresses.includes(address);
    const servers = chosen.filter((server) => !isOwn(server));
    const stubDomains = new Map([...config.stubDomains, ...cluster.stubDomains]);
    const text = JSON.stringify([
      servers.map(nameOf),
      [...stubDomains].map(([domain, list]) => [domain, list.map(nameOf)]),
    ]);
    if (text === this.#reported) return;
    this.#reported = text;
    this.#forwarder.setTable({ servers, stubDomains });
    log.info('DNS upstream servers set', { servers: servers.map(nameOf), stubDomains: [...stubDomains.keys()] });
  }

  /**
   * Whether the client is this host or one of its pods. Other hosts on the link could route queries to this address.
   */
  #isPermitted(source: string): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    if (nowMs - this.#sourcesMs > SOURCES_MS || this.#sources.size > MAX_SOURCES) {
      this.#sources.clear();
      this.#sourcesMs = nowMs;
    }
    const known = this.#sources.get(source);
    if (known !== undefined) return known;
    const { podRanges, hostAddresses } = this.#deps.config;
    const may = podRanges.some((range) => isInNetwork(source, range)) || hostAddresses().includes(source);
    this.#sources.set(source, may);
    return may;
  }
}

function serviceKeyOf({ metadata }: EndpointSlice): string | undefined {
  const name = metadata?.labels?.[SERVICE_NAME];
  return name === undefined ? undefined : `${metadata?.namespace ?? ''}/${name}`;
}

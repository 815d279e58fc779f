/**
 * Router of one host: watches routes, ingresses, HTTP routes and their backends, and passes a new table to the proxy at
 * each change. Source: OpenShift's documentation, "Route configuration"; networking.k8s.io/v1; Gateway API.
 */
import type { Namespace, Secret, Service } from '../../api/generated/core/v1.ts';
import type { EndpointSlice } from '../../api/generated/discovery/v1.ts';
import type { Ingress, IngressClass } from '../../api/generated/networking/v1.ts';
import { type KubeObject, objectKey } from '../../api/meta/object.ts';
import { resources } from '../../api/resources.ts';
import { type ApplyLoop, startApplyLoop } from '../../base/concurrency/apply-loop.ts';
import { inTurns } from '../../base/concurrency/in-turns.ts';
import type { Log } from '../../base/log.ts';
import { type LabelSelector, matchesLabels } from '../../base/selector.ts';
import type { Clock, RandomSource } from '../../base/time/clock.ts';
import { NamedInformers } from '../../client/informers/named-informers.ts';
import type { NeedPods } from '../../client/informers/need-pods.ts';
import type { Informer, InformerFactory } from '../../client/types.ts';
import {
  Balancer,
  certificateOf,
  type Gateway,
  gateways,
  type HostPolicy,
  type HttpRoute,
  httpRoutes,
  isOwnGateway,
  isServed,
  permitsOf,
  type ReferenceGrant,
  type RoutingTable,
  referenceGrants,
  routingSteps,
  secretsOf,
  secretsOfGateway,
} from './core/index.ts';
import type { Certificate } from './core/port.ts';
import type { Route } from './kinds/routes/types.ts';
import { OwnCertificate } from './own-certificate.ts';
import type { CertificateVerifier, ProxyFactory, ProxySettings } from './port.ts';

export interface RouterDeps {
  readonly informers: InformerFactory;
  readonly proxies: ProxyFactory;
  readonly verify: CertificateVerifier;
  readonly needPods: NeedPods;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
  readonly config: ProxySettings & {
    /** Selector of the routes that this host serves. If undefined, all routes are served. */
    readonly routeSelector: LabelSelector | undefined;
    readonly namespaceSelector: LabelSelector | undefined;
    readonly policy: HostPolicy;
    /**
     * The host's own default certificate, reloaded periodically. If undefined, the cluster's default certificate is
     * used.
     */
    readonly ownCertificate?: () => Promise<Certificate>;
  };
}

export interface Router {
  /** Resolves after the first attempt to listen on the ports. The table is built later. */
  start(): Promise<void>;
  metrics(): string;
  stop(): Promise<void>;
}

const DEFAULT_CERTIFICATE = { namespace: 'openshift-ingress', name: 'router-certs-default' } as const;
const SERVICE_NAME = 'kubernetes.io/service-name';
const BY_SERVICE = 'router-service';

export const createRouter = (deps: RouterDeps): Router => new HostRouter(deps);

class HostRouter implements Router {
  readonly #deps: RouterDeps;
  readonly #objects: RoutedObjects;
  /** Certificates of ingresses and gateways, and the cluster's default certificate. */
  readonly #secrets: NamedInformers<Secret>;
  readonly #ownCertificate: OwnCertificate;
  readonly #balancer: Balancer;
  readonly #proxy: ReturnType<ProxyFactory['create']>;
  readonly #unsubscribe: (() => void)[] = [];
  /** Services in the table. Changes of other services are ignored. */
  #usedServices: ReadonlySet<string> = new Set();
  #loop: ApplyLoop | undefined;
  #isStopped = false;

  constructor(deps: RouterDeps) {
    const { informers, config } = deps;
    this.#deps = deps;
    const objects = routedObjects(informers, config.namespaceSelector);
    this.#objects = objects;
    this.#balancer = new Balancer(() => deps.random.random());
    this.#proxy = deps.proxies.create(config, this.#balancer, (key) => {
      const service = objects.services.get(key);
      if (service !== undefined) deps.needPods(service);
    });
    this.#secrets = new NamedInformers<Secret>(
      (type, options) => informers.informer(type, options),
      resources.secrets,
      this.#touch,
    );
    this.#ownCertificate = new OwnCertificate({ ...deps, read: config.ownCertificate, changed: this.#touch });
  }

  readonly #touch = (): void => this.#loop?.touch();

  async start(): Promise<void> {
    const { clock, log } = this.#deps;
    const { routes, ingresses, classes, services, slices } = this.#objects;
    slices.addIndex(BY_SERVICE, (slice) => [serviceOf(slice)]);
    const apply = (): Promise<void> => this.#apply();
    this.#loop = startApplyLoop({ apply, failure: 'routing table not replaced; retrying', clock, log });
    this.#followObjects();
    await this.#ownCertificate.start();
    await this.#proxy.start();
    // The first table is built after the informers have synced. An incomplete table would return 503 for routes that
    // an earlier process served.
    await Promise.all([routes, ingresses, classes, services, slices].map((informer) => informer.synced));
    if (!this.#isStopped) this.#touch();
  }

  metrics(): string {
    return this.#proxy.metrics();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#ownCertificate.stop();
    for (const each of this.#unsubscribe) each();
    await this.#loop?.stop();
    this.#secrets.stop();
    await this.#proxy.stop();
  }

  #followObjects(): void {
    const { routes, ingresses, classes, services, slices, gatewayApi, namespaces } = this.#objects;
    this.#follow(routes);
    this.#follow(ingresses);
    this.#follow(classes);
    this.#follow(services, (service) => this.#usedServices.has(objectKey(service)));
    this.#follow(slices, (slice) => this.#usedServices.has(serviceOf(slice)));
    this.#follow(gatewayApi.gateways);
    this.#follow(gatewayApi.routes);
    this.#follow(gatewayApi.grants);
    if (namespaces !== undefined) this.#follow(namespaces);
  }

  #follow<T extends KubeObject>(informer: Informer<T>, concerns: (object: T) => boolean = () => true): void {
    const wake = (object: T): void => {
      if (concerns(object)) this.#touch();
    };
    this.#unsubscribe.push(informer.onChange({ added: wake, updated: wake, deleted: wake }));
    informer.start();
  }

  /** Builds the routing table from the current objects and passes it to the proxy. */
  async #apply(): Promise<void> {
    const { config, clock, log, verify } = this.#deps;
    const { routes, ingresses, classes, services, slices, gatewayApi } = this.#objects;
    const isOurs = (object: KubeObject): boolean => this.#isOurs(object);
    const ingressClasses = classes.list();
    const served = ingresses.list().filter((ingress) => isServed(ingress, ingressClasses) && isOurs(ingress));
    const permits = permitsOf(gatewayApi.grants.list());
    const ownGateways = gatewayApi.gateways.list().filter(isOwnGateway);
    this.#followSecrets([
      ...served.flatMap(secretsOf),
      ...ownGateways.flatMap((each) => secretsOfGateway(each, permits)),
    ]);
    this.#useDefaultCertificate();
    const steps = routingSteps({
      routes: routes.list().filter(isOurs),
      ingresses: served,
      ingressClasses,
      httpRoutes: gatewayApi.routes.list().filter(isOurs),
      gateways: ownGateways,
      permits,
      service: (key) => services.get(key),
      slices: (service) => slices.byIndex(BY_SERVICE, service),
      certificate: this.#certificate,
      check: verify,
      ports: { http: config.httpPort, https: config.httpsPort },
      policy: config.policy,
    });
    const { table } = await inTurns(steps, clock);
    this.#usedServices = new Set(table.rows.flatMap(({ backend }) => backend.pools.map(({ service }) => service)));
    this.#balancer.retain(idsOf(table));
    this.#proxy.swap(table);
    log.v(4, 'routing table replaced', { rows: table.size });
  }

  /** Whether the selectors of this host include the object. */
  #isOurs({ metadata }: KubeObject): boolean {
    const { routeSelector, namespaceSelector } = this.#deps.config;
    if (routeSelector !== undefined && !matchesLabels(routeSelector, metadata?.labels)) return false;
    if (namespaceSelector === undefined) return true;
    const namespace = this.#objects.namespaces?.get(metadata?.namespace ?? '');
    return matchesLabels(namespaceSelector, namespace?.metadata?.labels);
  }

  #followSecrets(keys: readonly string[]): void {
    this.#secrets.follow(new Set([objectKey({ metadata: { ...DEFAULT_CERTIFICATE } }), ...keys]));
  }

  readonly #certificate = (namespace: string, name: string): Certificate | undefined =>
    certificateOf(this.#secrets.get(`${namespace}/${name}`));

  #useDefaultCertificate(): void {
    const { namespace, name } = DEFAULT_CERTIFICATE;
    const certificate = this.#ownCertificate.current ?? this.#certificate(namespace, name);
    if (certificate !== undefined) this.#proxy.useDefaultCertificate(certificate);
  }
}

interface RoutedObjects {
  readonly routes: Informer<Route>;
  readonly ingresses: Informer<Ingress>;
  readonly classes: Informer<IngressClass>;
  readonly services: Informer<Service>;
  readonly slices: Informer<EndpointSlice>;
  readonly gatewayApi: {
    readonly gateways: Informer<Gateway>;
    readonly routes: Informer<HttpRoute>;
    readonly grants: Informer<ReferenceGrant>;
  };
  /** Undefined if routes are not selected by namespace. */
  readonly namespaces: Informer<Namespace> | undefined;
}

const routedObjects = (informers: InformerFactory, namespaceSelector: LabelSelector | undefined): RoutedObjects => ({
  routes: informers.informer(resources.routes),
  ingresses: informers.informer(resources.ingresses),
  classes: informers.informer(resources.ingressClasses),
  services: informers.informer(resources.services, { lastKnown: { set: 'services' } }),
  slices: informers.informer(resources.endpointSlices, { lastKnown: { set: 'endpoint-slices' } }),
  gatewayApi: {
    gateways: informers.informer(gateways),
    routes: informers.informer(httpRoutes),
    grants: informers.informer(referenceGrants),
  },
  namespaces: namespaceSelector === undefined ? undefined : informers.informer(resources.namespaces),
});

const serviceOf = ({ metadata }: EndpointSlice): string =>
  `${metadata?.namespace ?? ''}/${metadata?.labels?.[SERVICE_NAME] ?? ''}`;

const idsOf = (table: RoutingTable): Set<string> => new Set(table.rows.map(({ backend }) => backend.id));

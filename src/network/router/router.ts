/**
 * Router of one host: watches routes, ingresses, HTTP routes and their backends, and passes a new table to the proxy at
 * each change. Source: OpenShift's documentation, "Route configuration"; networking.k8s.io/v1; Gateway API.
 */
import type { Secret, Service } from '../../api/generated/core/v1.ts';
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

export function createRouter(deps: RouterDeps): Router {
  const { informers, config, log, clock } = deps;
  const balancer = new Balancer(() => deps.random.random());
  const routes: Informer<Route> = informers.informer(resources.routes);
  const ingresses: Informer<Ingress> = informers.informer(resources.ingresses);
  const classes: Informer<IngressClass> = informers.informer(resources.ingressClasses);
  const services: Informer<Service> = informers.informer(resources.services, { lastKnown: { set: 'services' } });
  const proxy = deps.proxies.create(config, balancer, (key) => {
    const service = services.get(key);
    if (service !== undefined) deps.needPods(service);
  });
  const slices: Informer<EndpointSlice> = informers.informer(resources.endpointSlices, {
    lastKnown: { set: 'endpoint-slices' },
  });
  const gatewayObjects: Informer<Gateway> = informers.informer(gateways);
  const httpRouteObjects: Informer<HttpRoute> = informers.informer(httpRoutes);
  const grantObjects: Informer<ReferenceGrant> = informers.informer(referenceGrants);
  const namespaces = config.namespaceSelector === undefined ? undefined : informers.informer(resources.namespaces);
  const unsubscribe: (() => void)[] = [];
  /** Services in the table. Changes of other services are ignored. */
  let used: ReadonlySet<string> = new Set();
  let loop: ApplyLoop | undefined;
  let stopped = false;

  const touch = (): void => loop?.touch();
  const follow = <T extends KubeObject>(informer: Informer<T>, concerns: (object: T) => boolean = () => true): void => {
    const wake = (object: T): void => {
      if (concerns(object)) touch();
    };
    unsubscribe.push(informer.onChange({ added: wake, updated: wake, deleted: wake }));
    informer.start();
  };
  const serviceOf = ({ metadata }: EndpointSlice): string =>
    `${metadata?.namespace ?? ''}/${metadata?.labels?.[SERVICE_NAME] ?? ''}`;
  const secrets = new NamedInformers<Secret>(
    (type, options) => informers.informer(type, options),
    resources.secrets,
    touch,
  );
  const certificate = (namespace: string, name: string): Certificate | undefined =>
    certificateOf(secrets.get(`${namespace}/${name}`));

  const own = new OwnCertificate({ ...deps, read: config.ownCertificate, changed: touch });

  const isOurs = ({ metadata }: KubeObject): boolean => {
    const { routeSelector, namespaceSelector } = config;
    if (routeSelector !== undefined && !matchesLabels(routeSelector, metadata?.labels)) return false;
    if (namespaceSelector === undefined) return true;
    return matchesLabels(namespaceSelector, namespaces?.get(metadata?.namespace ?? '')?.metadata?.labels);
  };

  const apply = async (): Promise<void> => {
    const ingressClasses = classes.list();
    const served = ingresses.list().filter((ingress) => isServed(ingress, ingressClasses) && isOurs(ingress));
    const byCluster = objectKey({ metadata: { ...DEFAULT_CERTIFICATE } });
    const permits = permitsOf(grantObjects.list());
    const ofGateways = gatewayObjects.list().filter(isOwnGateway);
    secrets.follow(
      new Set([
        byCluster,
        ...served.flatMap(secretsOf),
        ...ofGateways.flatMap((each) => secretsOfGateway(each, permits)),
      ]),
    );
    const byDefault = own.current ?? certificate(DEFAULT_CERTIFICATE.namespace, DEFAULT_CERTIFICATE.name);
    if (byDefault !== undefined) proxy.useDefaultCertificate(byDefault);
    const steps = routingSteps({
      routes: routes.list().filter(isOurs),
      ingresses: served,
      ingressClasses,
      httpRoutes: httpRouteObjects.list().filter(isOurs),
      gateways: ofGateways,
      permits,
      service: (key) => services.get(key),
      slices: (service) => slices.byIndex(BY_SERVICE, service),
      certificate,
      check: deps.verify,
      ports: { http: config.httpPort, https: config.httpsPort },
      policy: config.policy,
    });
    const { table } = await inTurns(steps, clock);
    used = new Set(table.rows.flatMap(({ backend }) => backend.pools.map(({ service }) => service)));
    balancer.retain(idsOf(table));
    proxy.swap(table);
    log.v(4, 'routing table replaced', { rows: table.size });
  };

  return {
    async start() {
      slices.addIndex(BY_SERVICE, (slice) => [serviceOf(slice)]);
      loop = startApplyLoop({ apply, failure: 'routing table not replaced; retrying', clock, log });
      follow(routes);
      follow(ingresses);
      follow(classes);
      follow(services, (service) => used.has(objectKey(service)));
      follow(slices, (slice) => used.has(serviceOf(slice)));
      follow(gatewayObjects);
      follow(httpRouteObjects);
      follow(grantObjects);
      if (namespaces !== undefined) follow(namespaces);
      await own.start();
      await proxy.start();
      // The first table is built after the informers have synced. An incomplete table would return 503 for routes that
      // an earlier process served.
      await Promise.all([routes, ingresses, classes, services, slices].map((informer) => informer.synced));
      if (!stopped) touch();
    },
    metrics: () => proxy.metrics(),
    async stop() {
      stopped = true;
      own.stop();
      for (const each of unsubscribe) each();
      await loop?.stop();
      secrets.stop();
      await proxy.stop();
    },
  };
}

const idsOf = (table: RoutingTable): Set<string> => new Set(table.rows.map(({ backend }) => backend.id));

/**
 * Cluster part of the router: its classes, kinds and default certificate, and the status of routes, ingresses and
 * Gateway API objects. Uses the same admission as each host's router, from network/router/core.
 */

import type { Node, Secret, Service } from '../../../api/generated/core/v1.ts';
import type { EndpointSlice } from '../../../api/generated/discovery/v1.ts';
import type { Ingress, IngressClass } from '../../../api/generated/networking/v1.ts';
import type { Role } from '../../../api/generated/rbac/v1.ts';
import { ownAddressesOf } from '../../../api/kinds/nodes/nodes/own-addresses.ts';
import { type KubeObject, objectKey, type ResourceType } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import { decodeBase64, encodeBase64 } from '../../../api/validation/base64.ts';
import { inTurns } from '../../../base/concurrency/in-turns.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import { NamedInformers } from '../../../client/informers/named-informers.ts';
import type { Informer } from '../../../client/types.ts';
import { attemptAll } from '../../../controllers/framework/attempt-all.ts';
import { ControllerTerm } from '../../../controllers/framework/controller-term.ts';
import type {
  ControllerHandle,
  ControllerRun,
  ControllerSpec,
  RunScope,
} from '../../../controllers/framework/framework.ts';
import { ignoreAlreadyExists } from '../../../controllers/framework/ignore-already-exists.ts';
import { ignoreNotFound } from '../../../controllers/framework/ignore-not-found.ts';
import {
  attachments,
  certificateOf,
  certificateProblem,
  type Gateway,
  gatewayClasses,
  gatewayDefinitions,
  gatewayStatus,
  gateways,
  type HttpRoute,
  httpRouteStatus,
  httpRoutes,
  isOwnGateway,
  isServed,
  permitsOf,
  planRouteStatus,
  type ReferenceGrant,
  ROUTER_CLASS,
  ROUTER_CONTROLLER,
  type RoutingPlan,
  referenceGrants,
  routeId,
  routingSteps,
  sameStatus,
  secretsOfGateway,
  unpermittedBackend,
} from '../core/index.ts';
import type { Route } from '../kinds/routes/types.ts';
import { gatewayCertificateRoles, permitCertificates } from './gateway-certificates.ts';
import type { RouterFacts } from './ingress-router-port.ts';

type Permits = ReturnType<typeof permitsOf>;

const GROUP = 'gateway.networking.k8s.io';
const CERTIFICATE = { namespace: 'openshift-ingress', name: 'router-certs-default' } as const;
const DEFAULT_CLASS = 'ingressclass.kubernetes.io/is-default-class';
const ALL = 'all';
const CONSOLE_ROUTE = 'openshift-console/console';
const CONSOLE_PUBLIC = { namespace: 'openshift-config-managed', name: 'console-public' } as const;
const RENEWAL_MS = 3_600_000;
/** Delay that combines a burst of new routes into one pass. */
const SETTLE_MS = 20;

export const ingressRouterController: ControllerSpec = {
  name: 'ingress-router',
  eventSource: ROUTER_CONTROLLER,
  reads: [
    resources.routes,
    resources.ingresses,
    resources.ingressClasses,
    resources.nodes,
    resources.secrets,
    resources.roles,
    gateways,
    httpRoutes,
    referenceGrants,
  ],
  writes: [
    resources.routes,
    resources.ingresses,
    resources.ingressClasses,
    resources.secrets,
    resources.configMaps,
    resources.roles,
    resources.roleBindings,
    resources.customResourceDefinitions,
    gateways,
    httpRoutes,
    gatewayClasses,
  ],
  uses: ['router'],
  prepare,
};

function prepare(handle: ControllerHandle): ControllerRun {
  const facts = handle.use('router');
  // Without these facts, the API server belongs to another installation, which has a router of its own.
  if (facts === undefined) return () => {};
  const classes = handle.informer(resources.ingressClasses);
  const secrets = handle.informer(resources.secrets, {
    namespace: CERTIFICATE.namespace,
    fieldSelector: `metadata.name=${CERTIFICATE.name}`,
  });
  const parts: Parts = {
    facts,
    routes: handle.informer(resources.routes),
    ingresses: handle.informer(resources.ingresses),
    classes,
    nodes: handle.informer(resources.nodes),
    secrets,
    gatewayApi: new GatewayApi(handle),
    certificateRoles: gatewayCertificateRoles(handle),
    ensureCertificate: certificateKeeper(handle, facts, secrets),
    ensureKinds: kindsKeeper(handle, classes),
    publishConsole: consolePublisher(handle),
  };
  return (scope) => new IngressRouter(handle, scope, parts).start();
}

interface Parts {
  readonly facts: RouterFacts;
  readonly routes: Informer<Route>;
  readonly ingresses: Informer<Ingress>;
  readonly classes: Informer<IngressClass>;
  readonly nodes: Informer<Node>;
  /** The default certificate. */
  readonly secrets: Informer<Secret>;
  readonly gatewayApi: GatewayApi;
  readonly certificateRoles: Informer<Role>;
  readonly ensureCertificate: () => Promise<void>;
  readonly ensureKinds: () => Promise<void>;
  readonly publishConsole: ReturnType<typeof consolePublisher>;
}

/** Objects of the Gateway API. Their kinds may not exist yet, so the controllers do not wait for these informers. */
class GatewayApi {
  readonly #handle: ControllerHandle;
  #opened:
    | {
        readonly gateways: Informer<Gateway>;
        readonly routes: Informer<HttpRoute>;
        readonly grants: Informer<ReferenceGrant>;
      }
    | undefined;

  constructor(handle: ControllerHandle) {
    this.#handle = handle;
  }

  get isOpen(): boolean {
    return this.#opened !== undefined;
  }

  gateways(): Gateway[] {
    return this.#opened?.gateways.list() ?? [];
  }

  gateway(key: string): Gateway | undefined {
    return this.#opened?.gateways.get(key);
  }

  routes(): HttpRoute[] {
    return this.#opened?.routes.list() ?? [];
  }

  grants(): ReferenceGrant[] {
    return this.#opened?.grants.list() ?? [];
  }

  /** Starts the informers. Called in each term after the kinds have been created. */
  open(scope: RunScope, changed: () => void): void {
    this.#opened ??= {
      gateways: this.#handle.informer(gateways),
      routes: this.#handle.informer(httpRoutes),
      grants: this.#handle.informer(referenceGrants),
    };
    const follow = { added: changed, updated: changed, deleted: changed };
    for (const informer of Object.values(this.#opened)) {
      informer.start();
      scope.onChange<KubeObject>(informer, follow);
    }
  }
}

class IngressRouter extends ControllerTerm {
  readonly #parts: Parts;
  /** Secrets of listeners, whose conditions report whether the certificates can be served. */
  readonly #listenerSecrets: NamedInformers<Secret>;
  #isGatewayApiOpen = false;

  constructor(handle: ControllerHandle, scope: RunScope, parts: Parts) {
    super(handle, scope, 1);
    this.#parts = parts;
    this.#listenerSecrets = new NamedInformers<Secret>(
      (type, options) => handle.informer(type, options),
      resources.secrets,
      this.#wake,
    );
  }

  readonly #wake = (): void => this.queue.addAfter(ALL, SETTLE_MS);

  override async start(): Promise<void> {
    this.scope.signal.addEventListener('abort', () => this.#listenerSecrets.stop(), { once: true });
    this.#followObjects();
    await this.#maintainCertificate();
    this.#createKinds();
    this.#wake();
  }

  #followObjects(): void {
    const { routes, ingresses, classes, nodes } = this.#parts;
    const wake = this.#wake;
    const follow = { added: wake, updated: wake, deleted: wake };
    this.scope.onChange(routes, follow);
    this.scope.onChange(ingresses, follow);
    this.scope.onChange(classes, follow);
    this.scope.onChange(nodes, {
      added: wake,
      deleted: wake,
      updated: (node, old) => {
        if (isReady(node) !== isReady(old)) wake();
      },
    });
  }

  async #maintainCertificate(): Promise<void> {
    const { secrets, certificateRoles, ensureCertificate } = this.#parts;
    const certificates = this.scope.queue(ensureCertificate, 1);
    await secrets.synced;
    await certificateRoles.synced;
    this.scope.onChange(secrets, { deleted: () => certificates.add(ALL) });
    certificates.add(ALL);
    this.scope.every(RENEWAL_MS, () => certificates.add(ALL));
  }

  #createKinds(): void {
    const { ensureKinds, gatewayApi } = this.#parts;
    const kinds = this.scope.queue(async () => {
      await ensureKinds();
      if (this.#isGatewayApiOpen) return;
      this.#isGatewayApiOpen = true;
      gatewayApi.open(this.scope, this.#wake);
    }, 1);
    kinds.add(ALL);
  }

  /** Reports the status of all routes, ingresses and Gateway API objects. */
  protected override async sync(): Promise<void> {
    const { handle } = this;
    const { facts, routes, ingresses, classes, nodes, gatewayApi, certificateRoles, publishConsole } = this.#parts;
    const now = timestamp(handle.clock.nowMs());
    const permits = permitsOf(gatewayApi.grants());
    const own = gatewayApi.gateways().filter(isOwnGateway);
    const namedSecrets = own.flatMap((each) => secretsOfGateway(each, permits));
    this.#listenerSecrets.follow(new Set(namedSecrets));
    await this.#listenerSecrets.synced();
    const plan = await this.#planRouting(own, permits);
    const reports: (() => Promise<unknown>)[] = [];
    for (const route of routes.list()) {
      const wanted = planRouteStatus(route, plan.rejected.get(routeId(route)), facts.domain, now);
      if (wanted !== undefined) reports.push(() => writeStatus(handle, resources.routes, route, { ingress: wanted }));
    }
    await publishConsole(routes.get(CONSOLE_ROUTE), plan.rejected.has(`route/${CONSOLE_ROUTE}`));
    const addresses = addressesOf(nodes.list());
    for (const ingress of ingresses.list())
      reports.push(() => reportIngress(handle, ingress, classes.list(), addresses));
    const found: GatewayObjects = {
      gateways: own,
      routes: gatewayApi.routes(),
      gateway: (key) => gatewayApi.gateway(key),
      permits,
      certificates: certificateProblem({ certificate: this.#certificate, check: facts.verify }),
    };
    reports.push(() => reportGateways(handle, found, { addresses, refused: plan.refused, now }));
    if (gatewayApi.isOpen) reports.push(() => permitCertificates(handle, certificateRoles, namedSecrets));
    await attemptAll(reports, (report) => report());
  }

  #planRouting(own: readonly Gateway[], permits: Permits): Promise<RoutingPlan> {
    const { facts, routes, ingresses, classes, gatewayApi } = this.#parts;
    const steps = routingSteps({
      routes: routes.list(),
      ingresses: ingresses.list(),
      ingressClasses: classes.list(),
      httpRoutes: gatewayApi.routes(),
      gateways: own,
      permits,
      // Admission does not depend on services and endpoints, so none are read.
      service: (): Service | undefined => undefined,
      slices: (): readonly EndpointSlice[] => [],
      certificate: this.#certificate,
      check: facts.verify,
      ports: { http: 80, https: 443 },
      policy: { domain: facts.domain, wildcardRoutes: facts.wildcardRoutes, names: facts.names },
    });
    return inTurns(steps, this.handle.clock);
  }

  readonly #certificate = (namespace: string, name: string) =>
    certificateOf(this.#listenerSecrets.get(`${namespace}/${name}`));
}

/** Publishes the URL of the console in the place where `oc` finds it. If there is no console, the URL is removed. */
function consolePublisher(handle: ControllerHandle): (route: Route | undefined, isRejected: boolean) => Promise<void> {
  let published: string | null | undefined;
  return async (route, isRejected) => {
    const host = isRejected ? '' : (route?.spec?.host ?? '');
    const consoleURL = host === '' ? null : `https://${host}`;
    if (published === consoleURL) return;
    const { name, namespace } = CONSOLE_PUBLIC;
    const change = { data: { consoleURL } };
    await ignoreNotFound(() => handle.writer(resources.configMaps).patch(name, namespace, 'merge', change));
    published = consoleURL;
  };
}

const isReady = ({ status }: Node): boolean =>
  status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') === true;

/** Creates the default certificate and renews it before expiry and when its names or issuer change. */
function certificateKeeper(
  handle: ControllerHandle,
  facts: RouterFacts,
  secrets: Informer<Secret>,
): () => Promise<void> {
  const names = [`*.${facts.domain}`, facts.domain];
  return async () => {
    const present = secrets.get(objectKey({ metadata: { ...CERTIFICATE } }));
    const pem = decodeBase64(present?.data?.['tls.crt'] ?? '') ?? '';
    if (present !== undefined && !facts.needsRenewal(pem, names)) return;
    const { certPem, keyPem } = await facts.issue(names);
    const data = { 'tls.crt': encodeBase64(certPem), 'tls.key': encodeBase64(keyPem) };
    const client = handle.writer(resources.secrets);
    const secret: Secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { ...CERTIFICATE },
      type: 'kubernetes.io/tls',
      data,
    };
    if (present === undefined) await ignoreAlreadyExists(() => client.create(secret));
    else await ignoreNotFound(() => client.patch(CERTIFICATE.name, CERTIFICATE.namespace, 'merge', { data }));
  };
}

/** Creates the router's classes and the Gateway API's kinds. */
function kindsKeeper(handle: ControllerHandle, classes: Informer<IngressClass>): () => Promise<void> {
  /** Creates the default class unless one exists. */
  const ensureClass = async (): Promise<void> => {
    const hasDefault = classes.list().some(({ metadata }) => metadata?.annotations?.[DEFAULT_CLASS] === 'true');
    const annotations = hasDefault ? {} : { [DEFAULT_CLASS]: 'true' };
    await ignoreAlreadyExists(() =>
      handle.writer(resources.ingressClasses).create({
        apiVersion: 'networking.k8s.io/v1',
        kind: 'IngressClass',
        metadata: { name: ROUTER_CLASS, annotations },
        spec: { controller: ROUTER_CONTROLLER },
      }),
    );
  };
  return async () => {
    await Promise.all([
      ...gatewayDefinitions.map((each) =>
        ignoreAlreadyExists(() => handle.writer(resources.customResourceDefinitions).create(each)),
      ),
      classes.synced.then(() => ensureClass()),
    ]);
    const spec = { controllerName: ROUTER_CONTROLLER };
    const gatewayClass = {
      apiVersion: `${GROUP}/v1`,
      kind: 'GatewayClass',
      metadata: { name: ROUTER_CLASS },
      spec,
    } as KubeObject;
    await ignoreAlreadyExists(() => handle.writer(gatewayClasses).create(gatewayClass));
  };
}

async function writeStatus(
  handle: ControllerHandle,
  type: ResourceType,
  object: KubeObject,
  status: object,
): Promise<void> {
  const { name = '', namespace, resourceVersion } = object.metadata ?? {};
  const change = { metadata: { resourceVersion }, status };
  await ignoreNotFound(() => handle.writer(type).patch(name, namespace, 'merge', change, { subresource: 'status' }));
}

interface GatewayObjects {
  /** Gateways whose class belongs to this router. */
  readonly gateways: readonly Gateway[];
  readonly routes: readonly HttpRoute[];
  gateway(key: string): Gateway | undefined;
  readonly permits: Permits;
  readonly certificates: ReturnType<typeof certificateProblem>;
}

interface RoutingResult {
  /** Addresses of the hosts that route. */
  readonly addresses: readonly string[];
  /** Messages of refused HTTP routes, by ID. */
  readonly refused: ReadonlyMap<string, string>;
  readonly now: string;
}

async function reportGateways(
  handle: ControllerHandle,
  { gateways: own, routes, gateway, permits, certificates }: GatewayObjects,
  { addresses, refused, now }: RoutingResult,
): Promise<void> {
  const attached = new Map<string, number>();
  const writes: (() => Promise<unknown>)[] = [];
  for (const route of routes) {
    const found = attachments(route, gateway, permits);
    for (const { parent, listeners } of found)
      for (const { name } of listeners) {
        const key = `${parent.namespace ?? route.metadata?.namespace}/${parent.name} ${name}`;
        attached.set(key, (attached.get(key) ?? 0) + 1);
      }
    if (found.length === 0) continue;
    const claimed = refused.get(`httproute/${objectKey(route)}`);
    const status = httpRouteStatus(route, found, claimed, unpermittedBackend(route, permits), now);
    if (!sameStatus(route.status, status)) writes.push(() => writeStatus(handle, httpRoutes, route, status));
  }
  for (const each of own) {
    const key = objectKey(each);
    const status = gatewayStatus(
      each,
      addresses,
      (name) => attached.get(`${key} ${name}`) ?? 0,
      { permits, certificates },
      now,
    );
    if (!sameStatus(each.status, status)) writes.push(() => writeStatus(handle, gateways, each, status));
  }
  await attemptAll(writes, (write) => write());
}

const addressesOf = (nodes: readonly Node[]): string[] =>
  nodes
    .filter(isReady)
    .flatMap((node) => ownAddressesOf(node).internal[0] ?? [])
    .sort();

async function reportIngress(
  handle: ControllerHandle,
  ingress: Ingress,
  ingressClasses: readonly IngressClass[],
  addresses: readonly string[],
): Promise<void> {
  if (!isServed(ingress, ingressClasses)) return;
  const present = (ingress.status?.loadBalancer?.ingress ?? []).map(({ ip }) => ip);
  if (present.join() === addresses.join()) return;
  await writeStatus(handle, resources.ingresses, ingress, {
    loadBalancer: { ingress: addresses.map((ip) => ({ ip })) },
  });
}

/** Composes the API server, starts its parts in order and stops them in reverse order. */

import { setMaxListeners } from 'node:events';
import { messageOf } from '../../base/errors.ts';
import { KUBERNETES_VERSION } from '../../base/versions/version.ts';
import { createAdmissionChain, disabledPlugins } from '../admission/chain.ts';
import { AuthenticationMap } from '../aggregation/authentication-map.ts';
import { AvailabilityController } from '../aggregation/availability.ts';
import { ForeignDiscovery } from '../aggregation/discovery.ts';
import { AvailabilityMetrics } from '../aggregation/metrics.ts';
import { Registration } from '../aggregation/registration.ts';
import { ApiServices } from '../aggregation/services.ts';
import { AuditTrail } from '../audit/trail.ts';
import { createAuthenticator } from '../authentication/index.ts';
import { OAuthTokens } from '../authentication/oauth-tokens.ts';
import { Authorization, DEFAULT_AUTHORIZERS } from '../authorization/index.ts';
import { IdentityLeases } from '../bootstrap/identity-leases.ts';
import { bootstrap } from '../bootstrap/index.ts';
import { ensureTokenTracking, TokenUses } from '../bootstrap/legacy-tokens.ts';
import { MasterEndpoints } from '../bootstrap/masters.ts';
import { ensureClusterConfig } from '../bootstrap/openshift-config.ts';
import { ensureOperators } from '../bootstrap/openshift-operator.ts';
import { PolicyChecker } from '../bootstrap/policy-status.ts';
import { ServiceAddressRepair } from '../bootstrap/service-addresses.ts';
import { ensureServiceRange } from '../bootstrap/service-range.ts';
import type { SoleWriter } from '../bootstrap/sole-writer.ts';
import { Console } from '../console/console.ts';
import { customKindOptions } from '../custom-resources/compile-rules.ts';
import { DefinitionController } from '../custom-resources/controller.ts';
import { CustomKinds } from '../custom-resources/registry.ts';
import { ensureFlowObjects } from '../flow-control/config-controller.ts';
import { createFairness, type Fairness } from '../flow-control/fairness.ts';
import { type Kinds, serveKinds } from '../pipeline/kinds.ts';
import type { Listener, ListenOptions } from '../port.ts';
import type { ServerContext } from '../rest/context.ts';
import { Compactor } from '../storage/compactor.ts';
import type { WatchCache } from '../watch-cache/watch-cache.ts';
import { WebhookCaller } from '../webhooks/caller.ts';
import { certificatesOf, tlsOf } from './certificates.ts';
import {
  admissionStore,
  assembleStorage,
  countReloads,
  quotaStore,
  requestDestinations,
  serviceAccountTokens,
  serviceAllocator,
} from './components.ts';
import type { ApiServer, ApiServerDeps } from './deps.ts';
import { createEndpoints } from './endpoints.ts';
import { Frontend } from './frontend.ts';
import { StartProgress } from './health/index.ts';
import { createLoginObjects } from './login-objects.ts';
import type { LoginServer } from './login-port.ts';
import { Metrics } from './metrics.ts';
import { OpenPaths } from './open-paths.ts';
import { servedDefinitions } from './served-definitions.ts';

const DEFAULT_SERVICE_CIDR = '172.30.0.0/16';
const DEFAULT_COMPACTION_SECONDS = 300;
const MAX_HEADER_BYTES = 64 * 1024;
const HEADERS_TIMEOUT_MS = 15_000;
/** Idle time after which a kept connection is closed, as in upstream. */
const KEEP_ALIVE_MS = 90_000;
const STOP_GRACE_MS = 5_000;
/** Retry interval while the store is not available. The API server may be started before the store. */
const LOAD_RETRY_MS = 200;

export function createApiServer(deps: ApiServerDeps): ApiServer {
  return new Server(deps);
}

class Server implements ApiServer {
  readonly #deps: ApiServerDeps;
  readonly #cache: WatchCache;
  readonly #context: ServerContext;
  readonly #metrics = new Metrics();
  readonly #stopping = new AbortController();
  /** True when shutdown has begun, so that /readyz fails. */
  #leaving = false;
  readonly #compactor: Compactor;
  readonly #frontend: Frontend;
  #identityLeases: IdentityLeases | undefined;
  readonly #masters: MasterEndpoints;
  readonly #soleWriter: SoleWriter;
  readonly #serviceAddresses: ServiceAddressRepair;
  readonly #customKinds: CustomKinds;
  readonly #definitions: DefinitionController;
  readonly #policies: PolicyChecker;
  readonly #apiServices: ApiServices;
  readonly #registration: Registration;
  readonly #availability: AvailabilityController;
  readonly #foreign: ForeignDiscovery;
  readonly #authenticationMap: AuthenticationMap;
  readonly #fairness: Fairness;
  readonly #login: LoginServer | undefined;
  #listener: Listener | undefined;
  #bootstrapped = false;
  readonly #progress = new StartProgress();
  #stopped: Promise<void> | undefined;

  constructor(deps: ApiServerDeps) {
    this.#deps = deps;
    // Every watch adds a listener. Node must not warn about their number.
    setMaxListeners(0, this.#stopping.signal);
    const { clock, random, config, log } = deps;
    const { encrypted, store, cache, objects, soleWriter } = assembleStorage(deps, this.#metrics);
    const tokenUses = new TokenUses();
    const tokens = serviceAccountTokens(config, cache, clock, (namespace, secret, day) =>
      tokenUses.note(this.#context, namespace, secret, day),
    );
    const { identities = { current: config }, certificates = { current: certificatesOf(config) } } = deps;
    const authorizers = deps.authorizers ?? { current: config.authorizers ?? DEFAULT_AUTHORIZERS };
    const authorization = new Authorization(() => authorizers.current, { backends: deps.http.backends, clock, log });
    this.#metrics.addGauge(() => authorization.metrics());
    countReloads(deps, this.#metrics);
    const serviceRange = config.serviceCidr ?? DEFAULT_SERVICE_CIDR;
    const destinations = requestDestinations(deps, cache, serviceRange);
    const webhooks = new WebhookCaller({ backends: deps.http.backends, cache, clock, random, destinations });
    this.#customKinds = new CustomKinds({
      cache,
      log,
      webhooks: { caller: webhooks, newUid: () => random.uuid() },
      kindOptions: customKindOptions,
      isBuiltIn: (apiVersion) => this.#context.kinds.isBuiltIn(apiVersion),
      changed: () => this.#registration.customKindsChanged(),
    });
    this.#apiServices = new ApiServices({ cache, log, certificates, backends: deps.http.backends });
    const kinds: Kinds = serveKinds(cache, () => this.#customKinds, servedDefinitions(config));
    const admission = createAdmissionChain({
      cache,
      authorization,
      clock,
      random,
      disabled: disabledPlugins(config),
      enabled: new Set(config.enabledAdmission),
      settings: config.admission ?? {},
      kinds: () => kinds,
      webhooks,
      metrics: this.#metrics,
      log,
      domain: config.openshift?.domain,
      readSigningRequest: deps.readSigningRequest,
      quotas: quotaStore(cache, objects, kinds),
      ...admissionStore(() => this.#context),
    });
    const services = serviceAllocator(config, serviceRange, cache, clock, random);
    this.#cache = cache;
    this.#soleWriter = soleWriter;
    const audit = deps.audit === undefined ? undefined : new AuditTrail(deps.audit, clock, random);
    if (audit !== undefined) this.#metrics.addGauge(() => audit.metrics());
    this.#context = {
      cache,
      store,
      objects,
      kinds,
      apiServices: this.#apiServices,
      clock,
      random,
      log,
      config,
      audit,
      authorization,
      identities,
      certificates,
      authenticator: createAuthenticator({
        config,
        identities,
        certificates,
        tokens,
        oauthTokens: new OAuthTokens(cache, clock, (...use) => tokenUses.noteOAuth(this.#context, ...use)),
        cache,
        backends: deps.http.backends,
        clock,
        log,
      }),
      tokens,
      admission,
      services,
      allocators: new Map([['services/specs', services]]),
      backends: deps.http.backends,
      destinations,
      imageRegistries: deps.imageRegistries,
      stopping: this.#stopping.signal,
    };
    this.#compactor = new Compactor(
      store,
      clock,
      log,
      config.compactionIntervalSeconds ?? DEFAULT_COMPACTION_SECONDS,
      cache,
    );
    const availability = new AvailabilityMetrics();
    this.#metrics.addGauge(() => availability.render());
    this.#foreign = new ForeignDiscovery(this.#context);
    this.#registration = new Registration(this.#context);
    this.#availability = new AvailabilityController(this.#context, availability);
    this.#authenticationMap = new AuthenticationMap(this.#context);
    this.#fairness = createFairness(this.#context, this.#metrics);
    const endpoints = createEndpoints({
      context: this.#context,
      foreign: this.#foreign,
      metrics: this.#metrics,
      startProgress: this.#progress,
      ...(encrypted === undefined ? {} : { checkEncryption: () => encrypted.checkPlugins() }),
      leaving: () => this.#leaving,
      debug: this.#fairness.debug,
      processFacts: deps.processFacts,
      releases: deps.releases,
      consoleLink: async () => this.#login?.consoleLink(),
      ...(deps.loadSchemaDescriptions === undefined ? {} : { loadSchemaDescriptions: deps.loadSchemaDescriptions }),
    });
    this.#masters = new MasterEndpoints(this.#context);
    this.#serviceAddresses = new ServiceAddressRepair(this.#context);
    this.#login = deps.login?.(createLoginObjects(this.#context, this.#context.tokens));
    const files = deps.loadConsole === undefined ? undefined : new Console(deps.loadConsole);
    const open = new OpenPaths(this.#login, files);
    this.#frontend = new Frontend(this.#context, this.#metrics, endpoints, this.#fairness.gate, open);
    this.#definitions = new DefinitionController(this.#context, this.#customKinds);
    this.#policies = new PolicyChecker(this.#context);
  }

  async start(): Promise<{ readonly port: number }> {
    const { config, http, log, clock } = this.#deps;
    const began = clock.monotonicMs();
    await this.#load();
    await this.#soleWriter.announce();
    this.#context.authorization.follow(this.#cache);
    this.#apiServices.start();
    await this.#customKinds.start();
    this.#fairness.load(this.#frontend);
    this.#progress.complete('caches');
    const loaded = clock.monotonicMs();
    log.info('watch cache loaded', { revision: this.#cache.revision, ms: Math.round(loaded - began) });
    this.#listener = await http.listen({
      bindAddress: config.bindAddress,
      port: config.port,
      tls: tlsOf(config, this.#context.certificates.current),
      maxHeaderBytes: MAX_HEADER_BYTES,
      headersTimeoutMs: HEADERS_TIMEOUT_MS,
      keepAliveTimeoutMs: KEEP_ALIVE_MS,
      ...(config.withoutHttp2 === true ? { withoutHttp2: true } : {}),
      ...(config.maxStreams === undefined ? {} : { maxStreams: config.maxStreams }),
      ...(config.sharesPort === undefined ? {} : { sharesPort: config.sharesPort }),
      ...this.#goaway(),
      request: (request, response, connection) => this.#frontend.handle(request, response, connection),
      upgrade: (request, socket, head, connection, inMessages) =>
        this.#frontend.upgrade(request, socket, head, connection, inMessages),
    });
    const { port } = this.#listener;
    this.#followCertificates(this.#listener);
    this.#compactor.start();
    this.#definitions.start();
    this.#policies.start();
    this.#availability.start();
    this.#foreign.start();
    await this.#bootstrap(port);
    log.info('ready', {
      port,
      version: KUBERNETES_VERSION.gitVersion,
      ms: Math.round(clock.monotonicMs() - began),
    });
    return { port };
  }

  #goaway(): Pick<ListenOptions, 'isLast'> {
    const { config, random } = this.#deps;
    const { goawayChance = 0 } = config;
    return goawayChance > 0 ? { isLast: () => random.random() < goawayChance } : {};
  }

  #followCertificates(listener: Listener): void {
    const { certificates, config, log } = this.#deps;
    certificates?.subscribe(() => {
      if (this.#stopping.signal.aborted) return;
      try {
        listener.updateTls(tlsOf(config, certificates.current));
      } catch (error) {
        log.error('cannot serve with the new certificates', { error: messageOf(error) });
      }
      this.#apiServices.renewCredentials();
      const { tokenKeys } = certificates.current;
      if (tokenKeys !== undefined) this.#context.tokens.replaceKeys(tokenKeys);
      this.#authenticationMap.changed();
    });
  }

  async #load(): Promise<void> {
    const { clock, log } = this.#deps;
    for (let attempt = 1; !this.#stopping.signal.aborted; attempt++) {
      try {
        await this.#cache.start();
        return;
      } catch (error) {
        if (attempt % 25 === 1) log.warn('waiting for the store', { error: messageOf(error) });
        await new Promise<void>((resolve) => {
          clock.setTimer(LOAD_RETRY_MS, resolve);
        });
      }
    }
    throw new Error('stopped while waiting for the store');
  }

  /** Writes the bootstrap objects. Requests are served meanwhile, but /readyz fails. */
  async #bootstrap(port: number): Promise<void> {
    const { clock, log, config } = this.#deps;
    const progress = this.#progress;
    const began = clock.monotonicMs();
    this.#identityLeases ??= new IdentityLeases(this.#context, config.identity);
    try {
      await Promise.all([
        progress.track('policy', bootstrap(this.#context)),
        progress.track('flow-objects', ensureFlowObjects(this.#context)),
        progress.track('service-range', ensureServiceRange(this.#context)),
        ensureClusterConfig(this.#context),
      ]);
      await Promise.all([
        progress.track('masters', this.#masters.start(config.advertisePort ?? port)),
        progress.track('api-services', this.#registration.start()),
        progress.track('authentication-map', this.#authenticationMap.start()),
        progress.track('token-tracking', ensureTokenTracking(this.#context)),
        progress.track('identity-leases', this.#identityLeases.start()),
        this.#login?.prepare(),
        ensureOperators(this.#context),
      ]);
      await this.#cache.freshen();
      await progress.track('fairness', this.#fairness.keep());
      this.#serviceAddresses.start();
      progress.complete('service-addresses');
      progress.complete('all');
      this.#bootstrapped = true;
      log.info('default objects written', { ms: Math.round(clock.monotonicMs() - began) });
      return;
    } catch (error) {
      // A full disk must not prevent reads: start without the objects and retry periodically.
      log.warn('cannot write the default objects yet', { error: messageOf(error) });
    }
    this.#retryBootstrap(port);
  }

  #retryBootstrap(port: number): void {
    this.#deps.clock.setTimer(2_000, () => {
      if (this.#stopping.signal.aborted || this.#bootstrapped) return;
      this.#bootstrap(port).catch((error: unknown) =>
        this.#deps.log.error('cannot write the default objects', { error: messageOf(error) }),
      );
    });
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#shutDown();
    return this.#stopped;
  }

  async #shutDown(): Promise<void> {
    const { config, clock } = this.#deps;
    this.#leaving = true;
    this.#compactor.stop();
    await this.#masters.stop();
    const { handoverDelaySeconds = 0 } = config;
    const { shutdownDelaySeconds = this.#masters.hasOtherMasters ? handoverDelaySeconds : 0 } = config;
    if (shutdownDelaySeconds > 0) {
      this.#listener?.retire();
      await new Promise<void>((resolve) => {
        clock.setTimer(shutdownDelaySeconds * 1000, resolve);
      });
    }
    this.#stopping.abort();
    if (this.#listener !== undefined) {
      this.#listener.drain();
      // Each request has its own deadline and is answered when it expires.
      await this.#frontend.settled();
      await this.#listener.close(STOP_GRACE_MS);
    }
    await this.#soleWriter.stop();
    this.#customKinds.stop();
    await this.#login?.stop();
    this.#apiServices.stop();
    this.#fairness.stop();
    this.#cache.stop();
    await this.#context.audit?.close();
    this.#deps.log.info('stopped');
  }
}

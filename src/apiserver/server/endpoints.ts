/** Endpoints other than resources: health, version, discovery, OpenAPI, metrics, issuer documents. */
import { ApiError } from '../../api/meta/status.ts';
import type { ProcessFacts } from '../../base/linux/process-facts.ts';
import { BUILD, KUBERNETES_VERSION, PRODUCT_VERSION } from '../../base/versions/version.ts';
import { authorityOf } from '../aggregation/backend.ts';
import type { ForeignDiscovery } from '../aggregation/discovery.ts';
import { createDiscovery } from '../discovery/discovery.ts';
import type { Exchange } from '../http/exchange.ts';
import { methodNotAllowed } from '../pipeline/write-request.ts';
import type { BackendContext, ServerContext } from '../rest/context.ts';
import { noSuchResource } from '../rest/reads/served-at.ts';
import { openWatches } from '../rest/watches/open-watches.ts';
import {
  answerHealth,
  type HealthCheck,
  type HealthEndpoint,
  HealthResults,
  type StartProgress,
} from './health/index.ts';
import { longRunningMetrics, type Metrics } from './metrics.ts';
import { objectMetrics } from './object-metrics.ts';
import { processMetrics } from './process-metrics.ts';
import type { ReleaseSource } from './release-port.ts';
import { answerRelease } from './releases.ts';

type EndpointsContext = BackendContext &
  Pick<ServerContext, 'apiServices' | 'config' | 'kinds' | 'log' | 'store' | 'tokens'>;

const STORE_TIMEOUT_MS = 2_000;
const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

export interface EndpointsDeps {
  readonly context: EndpointsContext;
  readonly metrics: Metrics;
  readonly foreign: ForeignDiscovery;
  readonly startProgress: StartProgress;
  /** Check of the KMS plug-ins. Rejects if a plug-in does not respond. */
  readonly checkEncryption?: () => Promise<void>;
  /** True when shutdown has begun. */
  leaving(): boolean;
  /** Debug pages by path. They are not listed in the index. */
  readonly debug: ReadonlyMap<string, (query: URLSearchParams) => string>;
  readonly loadSchemaDescriptions?: () => Promise<unknown>;
  readonly processFacts: ProcessFacts | undefined;
  readonly releases: ReleaseSource | undefined;
  /** Issues a one-time link to the console; see LoginServer. */
  consoleLink(): Promise<object | undefined>;
}

export interface Endpoints {
  answer(exchange: Exchange): Promise<void> | undefined;
}

/** Path from which cluster administrators request a one-time link to the console, by POST. */
export const CONSOLE_LINK_PATH = '/hyperedge/console-link';
/** Cache-Control header that lets relying parties cache the keys. */
const ISSUER_CACHE_CONTROL = 'public, max-age=3600';

async function answerConsoleLink(exchange: Exchange, { consoleLink }: EndpointsDeps): Promise<void> {
  if (exchange.info.verb !== 'post') throw methodNotAllowed();
  const link = await consoleLink();
  if (link === undefined)
    throw new ApiError(
      'NotFound',
      'the console is switched off on this host, or there is no secret kubeadmin in kube-system',
    );
  exchange.cacheControl = 'no-store';
  exchange.sendJson(201, link);
}

type Handler = (exchange: Exchange) => Promise<void> | undefined | void;

export function createEndpoints(deps: EndpointsDeps): Endpoints {
  const { context, metrics } = deps;
  metrics.addGauge(() => gauges(context));
  const discovery = createDiscovery(context, deps.foreign, deps.loadSchemaDescriptions);
  const results = new HealthResults();
  const health = healthEndpoints(deps).map((each) => ({ ...each, results }));
  const exact = new Map<string, Handler>([
    ['/version', (exchange) => exchange.sendJson(200, versionDocument())],
    [
      '/metrics',
      async (exchange) => {
        const [ofProcess, ofStore] = await Promise.all([processMetrics(deps.processFacts), storeSize(context)]);
        const text = `${metrics.render()}${ofStore}${ofProcess}\n`;
        exchange.sendBytes(200, Buffer.from(text), METRICS_TYPE);
      },
    ],
    ['/metrics/slis', (exchange) => exchange.sendBytes(200, Buffer.from(results.render()), METRICS_TYPE)],
    [
      '/openid/v1/jwks',
      (exchange) => {
        exchange.cacheControl = ISSUER_CACHE_CONTROL;
        exchange.sendBytes(200, Buffer.from(JSON.stringify(context.tokens.jwks())), 'application/jwk-set+json');
      },
    ],
    [
      '/.well-known/openid-configuration',
      (exchange) => {
        exchange.cacheControl = ISSUER_CACHE_CONTROL;
        exchange.sendJson(200, issuerDocument(context));
      },
    ],
  ]);
  return {
    answer(exchange) {
      const { path, verb } = exchange.info;
      if (path === CONSOLE_LINK_PATH) return answerConsoleLink(exchange, deps);
      if (verb !== 'get' && verb !== 'head') throw methodNotAllowed();
      const trimmed = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
      const handler = exact.get(trimmed);
      if (handler !== undefined) return handler(exchange) ?? undefined;
      const release = answerRelease(exchange, deps.releases);
      if (release !== undefined) return release;
      const dump = deps.debug.get(trimmed);
      if (dump !== undefined) return exchange.sendText(200, dump(exchange.info.query)) ?? undefined;
      const endpoint = health.find((each) => trimmed === each.path || trimmed.startsWith(`${each.path}/`));
      if (endpoint !== undefined) {
        return answerHealth(endpoint, exchange).then((found) => {
          if (!found) throw noSuchResource();
        });
      }
      if (trimmed === '/') {
        const paths = [...exact.keys(), ...health.map((each) => each.path), ...discovery.paths()].sort();
        return exchange.sendJson(200, { paths }) ?? undefined;
      }
      return discovery.answer(exchange, trimmed);
    },
  };
}

function versionDocument() {
  return {
    major: KUBERNETES_VERSION.major,
    minor: KUBERNETES_VERSION.minor,
    gitVersion: KUBERNETES_VERSION.gitVersion,
    gitCommit: BUILD.commit,
    gitTreeState: BUILD.treeState,
    buildDate: BUILD.date,
    goVersion: '',
    compiler: `node ${process.version}`,
    platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
    // Kubernetes' clients ignore this additional field.
    hyperedgeVersion: PRODUCT_VERSION,
  };
}

function issuerDocument(context: EndpointsContext): object {
  const { advertiseAddress, advertisePort, port, serviceAccounts } = context.config;
  return {
    issuer: context.tokens.issuer,
    jwks_uri:
      serviceAccounts.jwksUri ??
      `https://${authorityOf({ host: advertiseAddress, port: advertisePort ?? port })}/openid/v1/jwks`,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: context.tokens.algorithms(),
  };
}

function healthEndpoints(deps: EndpointsDeps): HealthEndpoint[] {
  const { context } = deps;
  const ping: HealthCheck = { name: 'ping', check: () => {} };
  const log: HealthCheck = { name: 'log', check: () => {} };
  const store: HealthCheck = { name: 'etcd', check: () => context.store.ping(STORE_TIMEOUT_MS) };
  const storeReady: HealthCheck = { name: 'etcd-readiness', check: () => context.store.ping(STORE_TIMEOUT_MS) };
  const synced: HealthCheck = {
    name: 'informer-sync',
    check: () => {
      if (!context.cache.ready) throw new Error('the watch cache is loading');
    },
  };
  const steps = deps.startProgress.checks();
  const shutdown: HealthCheck = {
    name: 'shutdown',
    check: () => {
      if (deps.leaving()) throw new Error('process is shutting down');
    },
  };
  const { checkEncryption } = deps;
  // Calls inside the process use no certificate, so this check always succeeds.
  const loopback: HealthCheck = { name: 'loopback-serving-certificate', check: () => {} };
  const encryption = checkEncryption === undefined ? [] : [{ name: 'kms-providers', check: checkEncryption }];
  return [
    { path: '/healthz', checks: [ping, log, loopback, store, ...encryption, ...steps] },
    // As upstream, /livez has no KMS check, because a restart does not repair a KMS plug-in.
    { path: '/livez', checks: [ping, log, loopback, store, ...steps] },
    { path: '/readyz', checks: [ping, log, store, ...encryption, storeReady, synced, ...steps, shutdown] },
  ];
}

function gauges(context: EndpointsContext): string {
  return [
    objectMetrics(context.kinds.all),
    longRunningMetrics(Array.from(openWatches(context).all, ({ info }) => info)),
    BUILD_INFO,
  ].join('\n');
}

/** Metric with the version. Source: k8s.io/component-base/metrics/prometheus/version. */
const BUILD_INFO = (() => {
  const { goVersion, gitVersion, gitCommit, gitTreeState, buildDate, compiler, platform, major, minor } =
    versionDocument();
  const labels = Object.entries({
    build_date: buildDate,
    compiler,
    git_commit: gitCommit,
    git_tree_state: gitTreeState,
    git_version: gitVersion,
    go_version: goVersion,
    major,
    minor,
    platform,
  }).map(([name, value]) => `${name}="${value}"`);
  return [
    "# HELP kubernetes_build_info A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, Go version, and compiler from which Kubernetes was built, and platform on which it is running.",
    '# TYPE kubernetes_build_info gauge',
    `kubernetes_build_info{${labels.join(',')}} 1`,
  ].join('\n');
})();

/**
 * Metric of the store's size. Empty if the store does not report its size. Source:
 * k8s.io/apiserver/pkg/storage/etcd3/metrics (monitorCollector).
 */
async function storeSize({ store }: EndpointsContext): Promise<string> {
  try {
    const bytes = await store.size(STORE_TIMEOUT_MS);
    return [
      '# HELP apiserver_storage_size_bytes Size of the storage database file physically allocated in bytes.',
      '# TYPE apiserver_storage_size_bytes gauge',
      `apiserver_storage_size_bytes{storage_cluster_id="etcd-0"} ${bytes}\n`,
    ].join('\n');
  } catch {
    return '';
  }
}

import { PRODUCT_VERSION } from '../../base/versions/version.ts';
import type { HttpAnswer, HttpRequest } from '../../wire/grpc/port.ts';
import type { Engine } from '../replication/engine.ts';
import { ALARM_NO_SPACE } from '../replication/maintenance/alarms.ts';
import { type MetricsSources, showMetrics } from './metrics/metrics.ts';
import { CLUSTER_VERSION, ETCD_VERSION } from './version.ts';

const TEXT = 'text/plain; charset=utf-8';
const JSON_TYPE = 'application/json';
const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/**
 * Handles plain HTTP requests on the client port like etcd. The checks of `/livez` and `/readyz` are those of etcd 3.5.
 */
export async function answerHttp(request: HttpRequest, sources: MetricsSources): Promise<HttpAnswer> {
  const { path, query } = request;
  if (request.method !== 'GET' && request.method !== 'HEAD') return text(405, 'Method Not Allowed\n');
  const [, root = '', only] = path.split('/');
  if (root === 'livez' || root === 'readyz') return checked(root, only, query, sources);
  switch (path) {
    case '/health':
      return health(query, sources);
    case '/version': {
      const versions = { etcdserver: ETCD_VERSION, etcdcluster: `${CLUSTER_VERSION}.0`, hyperedge: PRODUCT_VERSION };
      return { status: 200, contentType: JSON_TYPE, body: JSON.stringify(versions) };
    }
    case '/metrics':
      return { status: 200, contentType: METRICS_TYPE, body: await showMetrics(sources) };
    default:
      return text(404, '404 page not found\n');
  }
}

function text(status: number, body: string): HttpAnswer {
  return { status, contentType: TEXT, body };
}

/** `?serializable=true` checks only this member. `?exclude=NOSPACE` ignores the alarm. */
async function health(query: URLSearchParams, { engine, metrics }: MetricsSources): Promise<HttpAnswer> {
  const excluded = query.getAll('exclude');
  const raised = engine.cluster.alarms.map(({ alarm }) => (alarm === ALARM_NO_SPACE ? 'NOSPACE' : 'CORRUPT'));
  if (engine.full) raised.push('NOSPACE');
  const alarm = raised.find((name) => !excluded.includes(name));
  let reason = alarm === undefined ? undefined : `ALARM ${alarm}`;
  if (reason === undefined && engine.replica.leader === undefined) reason = 'RAFT NO LEADER';
  if (reason === undefined && query.get('serializable') !== 'true') reason = await linearizableRead(engine);
  if (reason === undefined) metrics.healthSuccesses += 1;
  else metrics.healthFailures += 1;
  const body = { health: reason === undefined ? 'true' : 'false', reason: reason ?? '' };
  return { status: reason === undefined ? 200 : 503, contentType: JSON_TYPE, body: JSON.stringify(body) };
}

type Check = (engine: Engine) => string | undefined | Promise<string | undefined>;

const CHECKS: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  livez: { serializable_read: () => undefined },
  readyz: {
    data_corruption: (engine) =>
      engine.cluster.alarms.some(({ alarm }) => alarm !== ALARM_NO_SPACE) ? 'alarm activated: CORRUPT' : undefined,
    serializable_read: () => undefined,
    linearizable_read: (engine) => linearizableRead(engine),
    // A learner must not receive client traffic.
    non_learner: ({ cluster, replica }) => (cluster.isLearner(replica.id) ? 'not supported for learner' : undefined),
  },
};

async function linearizableRead(engine: Engine): Promise<string | undefined> {
  try {
    await engine.range(PROBE);
    return undefined;
  } catch (error) {
    return `range error: ${(error as Error).message}`;
  }
}

const PROBE = {
  key: 'a',
  end: '',
  limit: 1,
  revision: 0,
  sortOrder: 0,
  sortTarget: 0,
  keysOnly: true,
  countOnly: false,
  minModRevision: 0,
  maxModRevision: 0,
  minCreateRevision: 0,
  maxCreateRevision: 0,
  serializable: false,
};

async function checked(
  root: string,
  only: string | undefined,
  query: URLSearchParams,
  { engine }: MetricsSources,
): Promise<HttpAnswer> {
  const all = Object.entries(CHECKS[root] ?? {});
  const wanted = only === undefined ? all : all.filter(([name]) => name === only);
  if (only !== undefined && wanted.length === 0) return text(404, '404 page not found\n');
  const excluded = new Set(query.getAll('exclude'));
  const lines: string[] = [];
  let failed = false;
  for (const [name, check] of wanted) {
    if (excluded.has(name)) {
      lines.push(`[+]${name} excluded: ok\n`);
      continue;
    }
    const reason = await check(engine);
    failed ||= reason !== undefined;
    lines.push(reason === undefined ? `[+]${name} ok\n` : `[-]${name} failed: ${reason}\n`);
  }
  if (failed) return text(503, lines.join(''));
  return text(200, query.has('verbose') ? `${lines.join('')}ok\n` : 'ok\n');
}

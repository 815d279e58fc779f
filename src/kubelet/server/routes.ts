import { toUid, type Uid } from '../../base/brand.ts';
export type RouteName =
  | 'healthz'
  | 'pods'
  | 'runningpods'
  | 'stats'
  | 'metrics'
  | 'resourceMetrics'
  | 'cadvisorMetrics'
  | 'probeMetrics'
  | 'usageHistory'
  | 'configz'
  | 'containerLogs'
  | 'hostLogs'
  | 'exec'
  | 'attach'
  | 'portForward'
  | 'run'
  | 'checkpoint'
  | 'rigConsole'
  | 'rigPower'
  | 'rigRecordings'
  | 'storeState'
  | 'snapshots'
  | 'snapshot'
  | 'imageUploads'
  | 'bundleUploads'
  | 'restarts'
  | 'doctor';

export interface Route {
  readonly name: RouteName;
  readonly methods: readonly string[];
  /** Node subresources. Permission for any of them allows the request. */
  readonly subresources: readonly string[];
  readonly verb: string;
  readonly namespace: string;
  readonly pod: string;
  /** '' when the path has none. */
  readonly uid: Uid;
  readonly container: string;
  readonly rig?: string;
  /** Name of the user, for the log. Set after authentication. */
  readonly user?: string;
  readonly query: URLSearchParams;
}

const VERBS: Readonly<Record<string, string>> = {
  GET: 'get',
  HEAD: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};
const PLAIN: ReadonlyMap<string, { readonly name: RouteName; readonly subresources: readonly string[] }> = new Map([
  ['/healthz', { name: 'healthz', subresources: ['healthz', 'proxy'] }],
  ['/healthz/ping', { name: 'healthz', subresources: ['healthz', 'proxy'] }],
  ['/healthz/syncloop', { name: 'healthz', subresources: ['healthz', 'proxy'] }],
  ['/pods', { name: 'pods', subresources: ['pods', 'proxy'] }],
  ['/runningpods', { name: 'runningpods', subresources: ['pods', 'proxy'] }],
  ['/stats/summary', { name: 'stats', subresources: ['stats'] }],
  ['/metrics', { name: 'metrics', subresources: ['metrics'] }],
  ['/metrics/resource', { name: 'resourceMetrics', subresources: ['metrics'] }],
  ['/metrics/cadvisor', { name: 'cadvisorMetrics', subresources: ['metrics'] }],
  ['/metrics/history', { name: 'usageHistory', subresources: ['metrics'] }],
  ['/metrics/probes', { name: 'probeMetrics', subresources: ['metrics'] }],
  ['/configz', { name: 'configz', subresources: ['configz', 'proxy'] }],
]);
/** Recordings have POST only, because the API server permits a GET through nodes/proxy with read access. */
const RIG_ROUTES: ReadonlyMap<string, Pick<Route, 'name' | 'methods'>> = new Map([
  ['console', { name: 'rigConsole', methods: ['GET', 'POST'] }],
  ['power', { name: 'rigPower', methods: ['GET', 'POST'] }],
  ['recordings', { name: 'rigRecordings', methods: ['POST'] }],
]);
const READ = ['GET', 'HEAD'];
/** Files that `hyperedge snapshot list` shows. The host serves listed names only. */
const SNAPSHOT_NAME = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,200}\.db$/;

/**
 * Returns the target of a request and the permission that it requires, or undefined for an unknown path. Running a
 * command in a container requires `create` even for the GET of a WebSocket, because read access to nodes/proxy must not
 * suffice.
 */
export function routeOf(method: string, url: string): Route | undefined {
  let parsed: URL;
  let parts: string[];
  try {
    parsed = new URL(url, 'https://kubelet');
    parts = parsed.pathname.split('/').slice(1).map(decodeURIComponent);
  } catch {
    return undefined;
  }
  const query = parsed.searchParams;
  const verb = VERBS[method] ?? 'get';
  const none = { namespace: '', pod: '', uid: toUid(undefined), container: '', query };
  if (parts[0] === 'hyperedge') return administrationRoute(parts, { ...none, verb });
  if (parts[0] === 'logs') return hostLogsRoute(parts, { ...none, verb });
  const plain = PLAIN.get(parsed.pathname.replace(/(.)\/$/, '$1'));
  if (plain !== undefined) return { ...plain, ...none, methods: READ, verb };
  if (parts.some((part) => part === '' || part === '.' || part === '..' || part.includes('/') || part.includes('\0')))
    return undefined;
  const [name = '', namespace = '', pod = '', third, fourth, ...more] = parts;
  if (more.length > 0 || pod === '') return undefined;
  switch (name) {
    case 'rigs': {
      const rigRoute = RIG_ROUTES.get(pod);
      if (third !== undefined || rigRoute === undefined) return undefined;
      return { ...none, ...rigRoute, rig: namespace, verb: 'create', subresources: ['proxy'] };
    }
    case 'containerLogs':
      if (third === undefined || fourth !== undefined) return undefined;
      return { name, ...none, namespace, pod, container: third, methods: READ, verb, subresources: ['proxy'] };
    case 'exec':
    case 'attach': {
      if (third === undefined) return undefined;
      const uid = toUid(fourth === undefined ? undefined : third);
      return {
        name,
        ...none,
        namespace,
        pod,
        uid,
        container: fourth ?? third,
        methods: ['GET', 'POST'],
        verb: 'create',
        subresources: ['proxy'],
      };
    }
    case 'checkpoint':
      if (third === undefined || fourth !== undefined) return undefined;
      return {
        name,
        ...none,
        namespace,
        pod,
        container: third,
        verb,
        methods: ['POST'],
        subresources: ['checkpoint', 'proxy'],
      };
    case 'run': {
      if (third === undefined) return undefined;
      const uid = toUid(fourth === undefined ? undefined : third);
      return {
        name,
        ...none,
        namespace,
        pod,
        uid,
        container: fourth ?? third,
        methods: ['POST'],
        verb: 'create',
        subresources: ['proxy'],
      };
    }
    case 'portForward':
      if (fourth !== undefined) return undefined;
      return {
        name,
        ...none,
        namespace,
        pod,
        uid: toUid(third),
        methods: ['GET', 'POST'],
        verb: 'create',
        subresources: ['proxy'],
      };
    default:
      return undefined;
  }
}

/** Route of `/logs/PATH`. The path is stored in place of the container name. */
function hostLogsRoute(
  [, ...rest]: readonly string[],
  route: Pick<Route, 'namespace' | 'pod' | 'uid' | 'query' | 'verb'>,
): Route | undefined {
  const names = rest.at(-1) === '' ? rest.slice(0, -1) : rest;
  if (names.some((name) => name === '' || name === '.' || name === '..' || /[/\0]/.test(name))) return undefined;
  return { name: 'hostLogs', ...route, container: names.join('/'), methods: READ, subresources: ['log', 'proxy'] };
}

/**
 * Routes below `/hyperedge/`. A snapshot contains every secret, so its download is a POST that requires `create`. The
 * name of a snapshot is stored in place of the container name.
 */
function administrationRoute(
  [, name, file, ...more]: readonly string[],
  route: Pick<Route, 'namespace' | 'pod' | 'uid' | 'container' | 'query' | 'verb'>,
): Route | undefined {
  const subresources = ['proxy'];
  const both = [...READ, 'POST'];
  if (more.length > 0) return undefined;
  if (name === 'snapshots' && file !== undefined) {
    if (!SNAPSHOT_NAME.test(file)) return undefined;
    return { ...route, name: 'snapshot', container: file, methods: ['POST'], verb: 'create', subresources };
  }
  if (file !== undefined) return undefined;
  // The checks start processes, so read access must not suffice.
  if (name === 'doctor')
    return { ...route, name, methods: ['POST'], verb: 'create', subresources: ['doctor', ...subresources] };
  if (name === 'restart') return { ...route, name: 'restarts', methods: both, subresources };
  if (name === 'store') return { ...route, name: 'storeState', methods: READ, subresources };
  if (name === 'snapshots') return { ...route, name, methods: both, subresources };
  if (name === 'images') return { ...route, name: 'imageUploads', methods: both, subresources };
  return name === 'bundles' ? { ...route, name: 'bundleUploads', methods: both, subresources } : undefined;
}

/** Whether a query parameter is set, with Go's boolean syntax. */
export const flag = (query: URLSearchParams, name: string): boolean =>
  ['1', 'true', 'True', 'TRUE', 't'].includes(query.get(name) ?? '');

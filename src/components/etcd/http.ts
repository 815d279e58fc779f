import { PRODUCT_VERSION } from '../../base/version.ts';
import type { Engine } from './engine.ts';
import { ETCD_VERSION } from './maintenance-service.ts';
import type { HttpAnswer } from './port.ts';
import type { WatchService } from './watch-service.ts';

/** Counts that `/metrics` shows beside what it reads from the engine. */
export interface CallCounts {
  readonly byPath: ReadonlyMap<string, number>;
}

const TEXT = 'text/plain; charset=utf-8';
const JSON_TYPE = 'application/json';

/** Plain requests on the client port, as etcd answers them. */
export async function answerHttp(
  method: string,
  path: string,
  engine: Engine,
  watches: WatchService,
  counts: CallCounts,
): Promise<HttpAnswer> {
  if (method !== 'GET' && method !== 'HEAD') return { status: 405, contentType: TEXT, body: 'Method Not Allowed\n' };
  switch (path) {
    case '/health':
      return engine.full
        ? { status: 503, contentType: JSON_TYPE, body: '{"health":"false","reason":"ALARM NOSPACE"}' }
        : { status: 200, contentType: JSON_TYPE, body: '{"health":"true"}' };
    case '/livez':
      return { status: 200, contentType: TEXT, body: 'ok\n' };
    case '/readyz':
      return engine.full
        ? { status: 503, contentType: TEXT, body: '[-]disk failed: no space left\n' }
        : { status: 200, contentType: TEXT, body: 'ok\n' };
    case '/version':
      return {
        status: 200,
        contentType: JSON_TYPE,
        body: JSON.stringify({ etcdserver: ETCD_VERSION, etcdcluster: '3.4.0', hyperedge: PRODUCT_VERSION }),
      };
    case '/metrics':
      return { status: 200, contentType: 'text/plain; version=0.0.4', body: metrics(engine, watches, counts) };
    default:
      return { status: 404, contentType: TEXT, body: '404 page not found\n' };
  }
}

function metrics(engine: Engine, watches: WatchService, counts: CallCounts): string {
  const { machine } = engine;
  const lines: string[] = [];
  const gauge = (name: string, help: string, value: number): void => {
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} gauge`, `${name} ${value}`);
  };
  gauge('etcd_server_has_leader', 'Whether or not a leader exists.', 1);
  gauge('etcd_server_is_leader', 'Whether or not this member is a leader.', 1);
  gauge('etcd_debugging_mvcc_keys_total', 'Total number of keys.', machine.keyCount);
  gauge('etcd_debugging_mvcc_current_revision', 'The current revision of store.', machine.visible);
  gauge('etcd_debugging_mvcc_compact_revision', 'The revision of the last compaction in store.', machine.compacted);
  gauge('etcd_debugging_mvcc_watcher_total', 'Total number of watchers.', watches.watchCount);
  gauge('etcd_debugging_mvcc_watch_stream_total', 'Total number of watch streams.', watches.streamCount);
  gauge('hyperedge_etcd_cached_value_bytes', 'Bytes of values kept in memory.', machine.cachedBytes);
  gauge('hyperedge_etcd_disk_full', '1 while writes are refused for want of space.', engine.full ? 1 : 0);
  lines.push(
    '# HELP grpc_server_started_total Total number of RPCs started on the server.',
    '# TYPE grpc_server_started_total counter',
  );
  for (const [path, count] of counts.byPath) {
    const [, service, name] = path.split('/');
    lines.push(`grpc_server_started_total{grpc_method="${name}",grpc_service="${service}"} ${count}`);
  }
  return `${lines.join('\n')}\n`;
}

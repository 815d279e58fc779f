/** Counters per route in Prometheus text format, with the names of OpenShift's router. */
import type { Backend } from '../core/port.ts';

interface Counters {
  readonly namespace: string;
  readonly name: string;
  sessions: number;
  bytesIn: number;
  bytesOut: number;
  readonly responses: Map<string, number>;
  connectErrors: number;
}

/** Maximum number of counted routes; the oldest counters are dropped. */
const MAX_ROUTES = 10_000;

export class RouteMetrics {
  readonly #routes = new Map<string, Counters>();
  unrouted = 0;

  of({ id, namespace, name }: Backend): Counters {
    const known = this.#routes.get(id);
    if (known !== undefined) return known;
    if (this.#routes.size >= MAX_ROUTES) {
      const [oldest] = this.#routes.keys();
      if (oldest !== undefined) this.#routes.delete(oldest);
    }
    const counters = { namespace, name, sessions: 0, bytesIn: 0, bytesOut: 0, responses: new Map(), connectErrors: 0 };
    this.#routes.set(id, counters);
    return counters;
  }

  responded(backend: Backend, status: number): void {
    const { responses } = this.of(backend);
    const code = `${Math.floor(status / 100)}xx`;
    responses.set(code, (responses.get(code) ?? 0) + 1);
  }

  render(pending: number, refused: number, rows: number): string {
    const lines: string[] = [];
    const family = (name: string, type: string, help: string, values: Iterable<readonly [string, number]>): void => {
      lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
      for (const [labels, value] of values) lines.push(`${name}${labels} ${value}`);
    };
    const labelsOf = ({ namespace, name }: Counters, more = ''): string =>
      `{namespace="${namespace}",route="${name}"${more}}`;
    const routes = [...this.#routes.values()];
    const byRoute = (read: (counters: Counters) => number): (readonly [string, number])[] =>
      routes.map((each) => [labelsOf(each), read(each)]);
    const backend = 'haproxy_backend';
    family(
      `${backend}_sessions_total`,
      'counter',
      'Requests and connections.',
      byRoute((each) => each.sessions),
    );
    family(
      `${backend}_http_responses_total`,
      'counter',
      'Responses by class of their status.',
      routes.flatMap((each) =>
        [...each.responses].map(([code, count]) => [labelsOf(each, `,code="${code}"`), count] as const),
      ),
    );
    family(
      `${backend}_bytes_in_total`,
      'counter',
      'Bytes of clients.',
      byRoute((each) => each.bytesIn),
    );
    family(
      `${backend}_bytes_out_total`,
      'counter',
      'Bytes of servers.',
      byRoute((each) => each.bytesOut),
    );
    family(
      `${backend}_connection_errors_total`,
      'counter',
      'Connections that no server accepted.',
      byRoute((each) => each.connectErrors),
    );
    family('hyperedge_router_unrouted_requests_total', 'counter', 'Requests for no route.', [['', this.unrouted]]);
    family('hyperedge_router_pending_connections', 'gauge', 'Connections without a whole request.', [['', pending]]);
    family('hyperedge_router_refused_connections_total', 'counter', 'Connections over a limit.', [['', refused]]);
    family('hyperedge_router_table_rows', 'gauge', 'Rows of the routing table.', [['', rows]]);
    return `${lines.join('\n')}\n`;
  }
}

/** Counters per route in Prometheus text format, with the names of OpenShift's router. */
import { MetricsText, type Sample } from '../../../base/metrics/metrics-text.ts';
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
    const text = new MetricsText();
    const labelsOf = ({ namespace, name }: Counters) => ({ namespace, route: name });
    const routes = [...this.#routes.values()];
    const byRoute = (read: (counters: Counters) => number): readonly Sample[] =>
      routes.map((each) => ({ labels: labelsOf(each), value: read(each) }));
    const backend = 'haproxy_backend';
    text.counter(
      `${backend}_sessions_total`,
      'Requests and connections.',
      byRoute((each) => each.sessions),
    );
    text.counter(
      `${backend}_http_responses_total`,
      'Responses by class of their status.',
      routes.flatMap((each) =>
        [...each.responses].map(([code, value]) => ({ labels: { ...labelsOf(each), code }, value })),
      ),
    );
    text.counter(
      `${backend}_bytes_in_total`,
      'Bytes received from clients.',
      byRoute((each) => each.bytesIn),
    );
    text.counter(
      `${backend}_bytes_out_total`,
      'Bytes received from servers.',
      byRoute((each) => each.bytesOut),
    );
    text.counter(
      `${backend}_connection_errors_total`,
      'Connections that no server accepted.',
      byRoute((each) => each.connectErrors),
    );
    text.counter('hyperedge_router_unrouted_requests_total', 'Requests that match no route.', this.unrouted);
    text.gauge('hyperedge_router_pending_connections', 'Connections without a complete request.', pending);
    text.counter('hyperedge_router_refused_connections_total', 'Connections refused because of a limit.', refused);
    text.gauge('hyperedge_router_table_rows', 'Rows of the routing table.', rows);
    return text.toString();
  }
}

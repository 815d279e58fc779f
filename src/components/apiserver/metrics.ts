/** Counters and histograms in Prometheus' text form, with upstream's names. */
import type { RequestInfo } from './http/request-info.ts';

/** Upstream's buckets of apiserver_request_duration_seconds, in seconds. */
const BUCKETS = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60];
/** Distinct label sets; beyond it everything is counted as `other`, so that clients cannot make the table grow. */
const MAX_SERIES = 4096;

interface Series {
  readonly labels: string;
  readonly counts: Uint32Array;
  sum: number;
  total: number;
}

const KNOWN_VERBS: ReadonlySet<string> = new Set([
  'get',
  'list',
  'watch',
  'create',
  'update',
  'patch',
  'delete',
  'deletecollection',
  'post',
  'put',
  'head',
]);

export class Metrics {
  readonly #durations = new Map<string, Series>();
  readonly #codes = new Map<string, number>();
  readonly #gauges: (() => string)[] = [];
  inFlightReading = 0;
  inFlightMutating = 0;

  /** Adds lines that are worked out when the metrics are asked for. */
  addGauge(render: () => string): void {
    this.#gauges.push(render);
  }

  /** `known`: the path names a resource that is served; others share one label set. */
  record(info: RequestInfo | undefined, known: boolean, code: number, seconds: number | undefined): void {
    const labels = labelsOf(info, known);
    const key = `${labels},code="${code}"`;
    if (this.#codes.has(key) || this.#codes.size < MAX_SERIES) this.#codes.set(key, (this.#codes.get(key) ?? 0) + 1);
    if (seconds === undefined) return;
    let series = this.#durations.get(labels);
    if (series === undefined) {
      if (this.#durations.size >= MAX_SERIES) return;
      series = { labels, counts: new Uint32Array(BUCKETS.length), sum: 0, total: 0 };
      this.#durations.set(labels, series);
    }
    series.sum += seconds;
    series.total += 1;
    const bucket = BUCKETS.findIndex((bound) => seconds <= bound);
    if (bucket >= 0) series.counts[bucket] = (series.counts[bucket] ?? 0) + 1;
  }

  render(): string {
    const lines = [
      '# HELP apiserver_request_total Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, and HTTP response code.',
      '# TYPE apiserver_request_total counter',
    ];
    for (const [labels, count] of this.#codes) lines.push(`apiserver_request_total{${labels}} ${count}`);
    lines.push(
      '# HELP apiserver_request_duration_seconds Response latency distribution in seconds for each verb, group, version, resource, subresource, scope and component.',
      '# TYPE apiserver_request_duration_seconds histogram',
    );
    for (const { labels, counts, sum, total } of this.#durations.values()) {
      let cumulative = 0;
      for (const [index, bound] of BUCKETS.entries()) {
        cumulative += counts[index] ?? 0;
        lines.push(`apiserver_request_duration_seconds_bucket{${labels},le="${bound}"} ${cumulative}`);
      }
      lines.push(`apiserver_request_duration_seconds_bucket{${labels},le="+Inf"} ${total}`);
      lines.push(`apiserver_request_duration_seconds_sum{${labels}} ${sum}`);
      lines.push(`apiserver_request_duration_seconds_count{${labels}} ${total}`);
    }
    lines.push(
      '# HELP apiserver_current_inflight_requests Maximal number of currently used inflight request limit of this apiserver per request kind in last second.',
      '# TYPE apiserver_current_inflight_requests gauge',
      `apiserver_current_inflight_requests{request_kind="mutating"} ${this.inFlightMutating}`,
      `apiserver_current_inflight_requests{request_kind="readOnly"} ${this.inFlightReading}`,
    );
    for (const gauge of this.#gauges) lines.push(gauge());
    return `${lines.join('\n')}\n`;
  }
}

function labelsOf(info: RequestInfo | undefined, known: boolean): string {
  if (info === undefined || !KNOWN_VERBS.has(info.verb)) {
    return 'component="apiserver",dry_run="",group="",resource="",scope="",subresource="",verb="OTHER",version=""';
  }
  const verb = info.verb.toUpperCase();
  if (!info.resource || !known) {
    return `component="apiserver",dry_run="",group="",resource="",scope="",subresource="",verb="${verb}",version=""`;
  }
  const scope = info.name !== '' ? 'resource' : info.namespace !== '' ? 'namespace' : 'cluster';
  const dryRun = info.query.size > 0 && info.query.get('dryRun') === 'All' ? 'All' : '';
  return `component="apiserver",dry_run="${dryRun}",group="${info.group}",resource="${info.plural}",scope="${scope}",subresource="${info.subresource}",verb="${verb}",version="${info.version}"`;
}

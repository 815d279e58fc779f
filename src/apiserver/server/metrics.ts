/** Request metrics in Prometheus text format, with upstream's names. */
import { Histogram } from '../../base/metrics/histogram.ts';
import type { RequestInfo, ResourceRequestInfo } from '../http/request-info.ts';

/** Upstream's buckets of apiserver_request_duration_seconds, in seconds. */
const BUCKETS = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60];
/** Upstream's buckets of apiserver_response_sizes, in bytes. */
const SIZE_BUCKETS = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
/**
 * Limit of distinct label sets. Further label sets are counted as `other`, so that clients cannot make the table grow.
 */
const MAX_SERIES = 4096;

interface Series {
  readonly counts: Uint32Array;
  sum: number;
  total: number;
}

interface Counter {
  count: number;
}

/** Counters of requests with the same labels. Requests find these counters without building the label text. */
interface Counted {
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  readonly subresource: string;
  readonly scope: Scope;
  readonly labels: string;
  readonly codes: Map<number, Counter>;
  durations: Series | undefined;
  sizes: Histogram | undefined;
}

type Scope = 'resource' | 'namespace' | 'cluster';

/** Verb labels of resource requests. As upstream, writes are labelled by HTTP method. */
const METHODS: Readonly<Record<string, string>> = { create: 'POST', update: 'PUT', deletecollection: 'DELETE' };

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
  readonly #codes = new Map<string, Counter>();
  readonly #sizes = new Map<string, Histogram>();
  /** Counters of requests for served resources without a query, by the name of the resource. */
  readonly #usual = new Map<string, Counted[]>();
  #usualCount = 0;
  /** Labels of requested deprecated versions. */
  readonly #deprecated = new Set<string>();
  readonly #gauges: (() => string)[] = [];
  inFlightReading = 0;
  inFlightMutating = 0;

  /** Adds lines that are rendered when the metrics are requested. */
  addGauge(render: () => string): void {
    this.#gauges.push(render);
  }

  /**
   * Counts a request. `known`: the path names a served resource; all other requests share one label set. `bytes`: size
   * of the response as sent. Undefined: not counted.
   */
  record(
    info: RequestInfo | undefined,
    known: boolean,
    code: number,
    seconds: number | undefined,
    bytes: number | undefined,
  ): void {
    const counted = this.#countedBy(info, known);
    let counter = counted.codes.get(code);
    if (counter === undefined) {
      counter = this.#counter(`${counted.labels},code="${code}"`);
      if (counter !== undefined) counted.codes.set(code, counter);
    }
    if (counter !== undefined) counter.count += 1;
    if (seconds === undefined) return;
    counted.durations ??= this.#series(counted.labels);
    if (counted.durations !== undefined) observe(counted.durations, seconds);
    if (bytes !== undefined) this.#observeSize(counted, bytes);
  }

  /** Counts a response size that was unknown when the request was recorded. */
  recordSize(info: RequestInfo | undefined, known: boolean, bytes: number): void {
    this.#observeSize(this.#countedBy(info, known), bytes);
  }

  #observeSize(counted: Counted, bytes: number): void {
    if (counted.verb !== 'get' && counted.verb !== 'list') return;
    counted.sizes ??= this.#sizesOf(counted.labels);
    counted.sizes?.observe(bytes);
  }

  /** Counts a request for a deprecated version. `removed`: release that removes it, '' if unknown. */
  recordDeprecated({ group, version, plural, subresource }: ResourceRequestInfo, removed: string): void {
    if (this.#deprecated.size >= MAX_SERIES) return;
    this.#deprecated.add(
      `group="${group}",removed_release="${removed}",resource="${plural}",subresource="${subresource}",version="${version}"`,
    );
  }

  #countedBy(info: RequestInfo | undefined, known: boolean): Counted {
    if (info?.resource !== true || !known || info.query.size > 0) return counting(info, known);
    let namesakes = this.#usual.get(info.plural);
    const scope = scopeOf(info);
    for (const each of namesakes ?? []) {
      if (
        each.verb === info.verb &&
        each.scope === scope &&
        each.subresource === info.subresource &&
        each.group === info.group &&
        each.version === info.version
      )
        return each;
    }
    const counted = counting(info, known);
    if (this.#usualCount >= MAX_SERIES) return counted;
    this.#usualCount += 1;
    if (namesakes === undefined) {
      namesakes = [];
      this.#usual.set(info.plural, namesakes);
    }
    namesakes.push(counted);
    return counted;
  }

  #counter(key: string): Counter | undefined {
    let counter = this.#codes.get(key);
    if (counter === undefined && this.#codes.size < MAX_SERIES) {
      counter = { count: 0 };
      this.#codes.set(key, counter);
    }
    return counter;
  }

  #series(labels: string): Series | undefined {
    let series = this.#durations.get(labels);
    if (series === undefined && this.#durations.size < MAX_SERIES) {
      series = { counts: new Uint32Array(BUCKETS.length), sum: 0, total: 0 };
      this.#durations.set(labels, series);
    }
    return series;
  }

  #sizesOf(labels: string): Histogram | undefined {
    const sized = labels.replace(/dry_run="[^"]*",/, '');
    let sizes = this.#sizes.get(sized);
    if (sizes === undefined && this.#sizes.size < MAX_SERIES) {
      sizes = new Histogram(SIZE_BUCKETS);
      this.#sizes.set(sized, sizes);
    }
    return sizes;
  }

  render(): string {
    const lines = [
      '# HELP apiserver_request_total Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, and HTTP response code.',
      '# TYPE apiserver_request_total counter',
    ];
    for (const [labels, { count }] of this.#codes) lines.push(`apiserver_request_total{${labels}} ${count}`);
    lines.push(
      '# HELP apiserver_request_duration_seconds Response latency distribution in seconds for each verb, group, version, resource, subresource, scope and component.',
      '# TYPE apiserver_request_duration_seconds histogram',
    );
    for (const [labels, { counts, sum, total }] of this.#durations) {
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
      histogramText(
        'apiserver_response_sizes',
        'Response size distribution in bytes for each group, version, verb, resource, subresource, scope and component.',
        this.#sizes,
      ),
    );
    lines.push(
      '# HELP apiserver_current_inflight_requests Maximal number of currently used inflight request limit of this apiserver per request kind in last second.',
      '# TYPE apiserver_current_inflight_requests gauge',
      `apiserver_current_inflight_requests{request_kind="mutating"} ${this.inFlightMutating}`,
      `apiserver_current_inflight_requests{request_kind="readOnly"} ${this.inFlightReading}`,
    );
    lines.push(
      '# HELP apiserver_requested_deprecated_apis Gauge of deprecated APIs that have been requested, broken out by API group, version, resource, subresource, and removed_release.',
      '# TYPE apiserver_requested_deprecated_apis gauge',
    );
    for (const labels of this.#deprecated) lines.push(`apiserver_requested_deprecated_apis{${labels}} 1`);
    for (const gauge of this.#gauges) lines.push(gauge());
    return `${lines.join('\n')}\n`;
  }
}

/** Histograms in text format by labels, without a trailing line break. */
export function histogramText(name: string, help: string, series: Iterable<readonly [string, Histogram]>): string {
  const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} histogram`];
  for (const [labels, histogram] of series) {
    for (const [le, total] of histogram.cumulative()) lines.push(`${name}_bucket{${labels},le="${le}"} ${total}`);
    lines.push(`${name}_sum{${labels}} ${histogram.sum}`, `${name}_count{${labels}} ${histogram.count}`);
  }
  return lines.join('\n');
}

/** Numbers of open long-running requests by kind, without a trailing line break. */
export function longRunningMetrics(requests: Iterable<RequestInfo | undefined>): string {
  const counts = new Map<string, number>();
  for (const info of requests) {
    if (info?.resource !== true) continue;
    const { group, version, plural, subresource, verb } = info;
    const labels = `component="apiserver",group="${group}",resource="${plural}",scope="${scopeOf(info)}",subresource="${subresource}",verb="${verb.toUpperCase()}",version="${version}"`;
    counts.set(labels, (counts.get(labels) ?? 0) + 1);
  }
  return [
    '# HELP apiserver_longrunning_requests Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, scope and component. Not all requests are tracked this way.',
    '# TYPE apiserver_longrunning_requests gauge',
    ...[...counts].map(([labels, count]) => `apiserver_longrunning_requests{${labels}} ${count}`),
  ].join('\n');
}

function counting(info: RequestInfo | undefined, known: boolean): Counted {
  const labels = labelsOf(info, known);
  const { group = '', version = '', subresource = '' } = info?.resource === true ? info : {};
  const { verb = '' } = info ?? {};
  const scope = info?.resource === true ? scopeOf(info) : 'cluster';
  return { verb, group, version, subresource, scope, labels, codes: new Map(), durations: undefined, sizes: undefined };
}

function observe(series: Series, seconds: number): void {
  const { counts } = series;
  series.sum += seconds;
  series.total += 1;
  for (let bucket = 0; bucket < BUCKETS.length; bucket++) {
    if (seconds > (BUCKETS[bucket] ?? 0)) continue;
    counts[bucket] = (counts[bucket] ?? 0) + 1;
    return;
  }
}

function scopeOf({ name, namespace, verb }: ResourceRequestInfo): Scope {
  return name !== '' || verb === 'create' ? 'resource' : namespace !== '' ? 'namespace' : 'cluster';
}

function labelsOf(info: RequestInfo | undefined, known: boolean): string {
  if (info === undefined || !KNOWN_VERBS.has(info.verb)) {
    return 'component="apiserver",dry_run="",group="",resource="",scope="",subresource="",verb="OTHER",version=""';
  }
  const verb = info.verb.toUpperCase();
  if (!info.resource || !known) {
    return `component="apiserver",dry_run="",group="",resource="",scope="",subresource="",verb="${verb}",version=""`;
  }
  const method = METHODS[info.verb] ?? verb;
  const scope = scopeOf(info);
  const dryRun = info.query.size > 0 && info.query.get('dryRun') === 'All' ? 'All' : '';
  return `component="apiserver",dry_run="${dryRun}",group="${info.group}",resource="${info.plural}",scope="${scope}",subresource="${info.subresource}",verb="${method}",version="${info.version}"`;
}

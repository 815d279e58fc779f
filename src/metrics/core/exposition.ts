/**
 * Parser for the CPU and memory metrics in a kubelet's `/metrics/resource` (Prometheus text format). Source: KEP-727,
 * github.com/prometheus/docs exposition_formats.
 */

export interface Reading {
  readonly atMs: number;
  /** CPU time used since the start of the container or node, in seconds. */
  readonly cpuSeconds: number;
  readonly memoryBytes: number;
  /** Start of the container; 0 if unknown. */
  readonly startedAtMs: number;
}

export interface NodeReadings {
  readonly node: Reading | undefined;
  /** Readings by `namespace/pod`, then by container. */
  readonly pods: ReadonlyMap<string, ReadonlyMap<string, Reading>>;
}

/** Maximum number of containers per node. Further ones are ignored, so that the memory use is limited. */
const MAX_CONTAINERS = 20_000;
const LINE = /^([a-z_]+)(?:\{([^}]*)\})? ([^ ]+)(?: (-?\d+))?$/;
const LABEL = /([a-z_]+)="((?:[^"\\]|\\.)*)"/g;

interface Partial {
  atMs?: number;
  cpuSeconds?: number;
  memoryBytes?: number;
  startedAtMs?: number;
}

/**
 * Parses the metrics. `nowMs` is the time of samples without a timestamp. Other metrics and invalid lines are ignored.
 */
export function readExposition(text: string, nowMs: number): NodeReadings {
  const node: Partial = {};
  const containers = new Map<string, Map<string, Partial>>();
  let count = 0;
  const containerOf = (labels: string): Partial | undefined => {
    const found = new Map<string, string>();
    for (const [, name = '', value = ''] of labels.matchAll(LABEL)) found.set(name, value);
    const [namespace, pod, name] = [found.get('namespace'), found.get('pod'), found.get('container')];
    if (namespace === undefined || pod === undefined || name === undefined) return undefined;
    const key = `${namespace}/${pod}`;
    const ofPod = containers.get(key) ?? new Map<string, Partial>();
    const known = ofPod.get(name);
    if (known !== undefined) return known;
    if (count >= MAX_CONTAINERS) return undefined;
    count += 1;
    const reading: Partial = {};
    ofPod.set(name, reading);
    containers.set(key, ofPod);
    return reading;
  };
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const [, metric = '', labels = '', shown = '', at] = LINE.exec(line) ?? [];
    const isNode = metric.startsWith('node_');
    const part = METRICS.get(isNode ? metric.slice('node_'.length) : metric.slice('container_'.length));
    if (part === undefined || (!isNode && !metric.startsWith('container_'))) continue;
    const value = Number(shown);
    if (!Number.isFinite(value) || value < 0) continue;
    const reading = isNode ? node : containerOf(labels);
    if (reading === undefined) continue;
    if (part === 'startedAtMs') reading.startedAtMs = value * 1000;
    else {
      reading[part] = value;
      if (part === 'cpuSeconds') reading.atMs = at === undefined ? nowMs : Number(at);
    }
  }
  const pods = new Map<string, ReadonlyMap<string, Reading>>();
  for (const [key, ofPod] of containers) {
    const whole = new Map<string, Reading>();
    for (const [name, partial] of ofPod) {
      const reading = completed(partial);
      if (reading !== undefined) whole.set(name, reading);
    }
    if (whole.size > 0) pods.set(key, whole);
  }
  return { node: completed(node), pods };
}

const METRICS: ReadonlyMap<string, 'cpuSeconds' | 'memoryBytes' | 'startedAtMs'> = new Map([
  ['cpu_usage_seconds_total', 'cpuSeconds'],
  ['memory_working_set_bytes', 'memoryBytes'],
  ['start_time_seconds', 'startedAtMs'],
]);

function completed({ atMs, cpuSeconds, memoryBytes, startedAtMs = 0 }: Partial): Reading | undefined {
  if (atMs === undefined || cpuSeconds === undefined || memoryBytes === undefined) return undefined;
  return { atMs, cpuSeconds, memoryBytes, startedAtMs };
}

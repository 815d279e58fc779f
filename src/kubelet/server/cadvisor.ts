/** Metrics of `/metrics/cadvisor`. Source: github.com/google/cadvisor docs/storage/prometheus.md. */

import { toUid } from '../../base/brand.ts';
import { MetricsText } from '../../base/metrics/metrics-text.ts';
import { podPath, rootComponents } from '../core/cgroups/names.ts';
import { qosClassOf } from '../core/cgroups/resources.ts';
import type { HostInfo } from '../port.ts';
import type { PodStats } from './stats.ts';

interface Measured {
  readonly labels: Readonly<Record<string, string>>;
  readonly atMs: number | undefined;
  readonly startedAtMs: number;
  readonly cpuNanoSeconds: number;
  readonly memoryUsageBytes: number;
  readonly memoryWorkingSetBytes: number;
  readonly memoryRssBytes: number;
  readonly pids: number;
}

const FAMILIES: readonly (readonly [
  name: string,
  type: 'counter' | 'gauge',
  help: string,
  read: (each: Measured) => number,
])[] = [
  [
    'container_cpu_usage_seconds_total',
    'counter',
    'Cumulative cpu time consumed in seconds.',
    (each) => each.cpuNanoSeconds / 1e9,
  ],
  ['container_memory_rss', 'gauge', 'Size of RSS in bytes.', (each) => each.memoryRssBytes],
  [
    'container_memory_usage_bytes',
    'gauge',
    'Current memory usage in bytes, including all memory regardless of when it was accessed',
    (each) => each.memoryUsageBytes,
  ],
  [
    'container_memory_working_set_bytes',
    'gauge',
    'Current working set in bytes.',
    (each) => each.memoryWorkingSetBytes,
  ],
  ['container_processes', 'gauge', 'Number of processes running inside the container.', (each) => each.pids],
  [
    'container_start_time_seconds',
    'gauge',
    'Start time of the container since unix epoch in seconds.',
    (each) => each.startedAtMs / 1000,
  ],
];

/** The cgroup of the pod itself has an empty container name, as in cAdvisor. */
export function cadvisorText(
  { cpus, memoryBytes }: Pick<HostInfo, 'cpus' | 'memoryBytes'>,
  pods: readonly PodStats[],
  cgroupRoot: string,
): string {
  const text = new MetricsText();
  text.family('machine_cpu_cores', 'gauge', 'Number of logical CPU cores.');
  text.sample('machine_cpu_cores', {}, cpus);
  text.family('machine_memory_bytes', 'gauge', 'Amount of memory installed on the machine.');
  text.sample('machine_memory_bytes', {}, memoryBytes);
  const measured = pods.flatMap((each) => measuredOf(each, cgroupRoot));
  for (const [name, type, help, read] of FAMILIES) {
    text.family(name, type, help);
    for (const each of measured) text.sample(name, each.labels, read(each), each.atMs);
  }
  return text.toString();
}

function measuredOf({ pod, startedAtMs, usage, containers }: PodStats, cgroupRoot: string): Measured[] {
  const { name = '', namespace = '' } = pod.metadata ?? {};
  const uid = toUid(pod.metadata?.uid);
  const path = `/${podPath(rootComponents(cgroupRoot), qosClassOf(pod), uid).join('/')}`;
  const own: Measured[] =
    usage === undefined
      ? []
      : [
          {
            labels: { container: '', id: path, image: '', name: '', namespace, pod: name },
            atMs: undefined,
            startedAtMs,
            cpuNanoSeconds: usage.cpuUsageNanoSeconds,
            ...usage,
          },
        ];
  return [
    ...own,
    ...containers.map(({ status, stats }) => ({
      labels: {
        container: status.name,
        id: `${path}/${status.id}`,
        image: status.image,
        name: status.id,
        namespace,
        pod: name,
      },
      atMs: stats.timestampMs,
      startedAtMs: status.startedAtMs,
      cpuNanoSeconds: stats.cpuUsageCoreNanoSeconds,
      ...stats,
    })),
  ];
}

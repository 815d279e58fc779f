/**
 * /stats/summary and the metrics endpoints. Source: k8s.io/kubelet/pkg/apis/stats/v1alpha1,
 * pkg/kubelet/metrics/collectors/resource_metrics.go.
 */

import type { Pod } from '../../api/generated/core/v1.ts';
import { BoundedMap } from '../../base/bounded-map.ts';
import { toUid, type Uid } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import { MetricsText } from '../../base/metrics/metrics-text.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import type { ContainerStats, ContainerStatus } from '../../runtime/port.ts';
import { type CgroupPath, podPath, rootComponents } from '../core/cgroups/names.ts';
import { qosClassOf } from '../core/cgroups/resources.ts';
import type { PodTable } from '../pods/pod-table.ts';
import type { PodWorker } from '../pods/pod-worker.ts';
import type { PodServices } from '../pods/services.ts';
import type { FileSystemUsage, HostUsage } from '../port.ts';
import type { CgroupUsage } from '../resources/cgroups.ts';
import type { VolumeUsage } from '../volumes/usage.ts';
import { cadvisorText } from './cadvisor.ts';

type StatsServices = Pick<
  PodServices,
  'cgroups' | 'clock' | 'directories' | 'host' | 'log' | 'runtime' | 'settings' | 'trees' | 'view'
>;

export interface PodStats {
  readonly pod: Pod;
  readonly startedAtMs: number;
  readonly usage: CgroupUsage | undefined;
  /** Primary address of the pod. */
  readonly address?: string | undefined;
  readonly containers: readonly { readonly status: ContainerStatus; readonly stats: ContainerStats }[];
}

interface Sample {
  readonly atMs: number;
  readonly nanoSeconds: number;
}

/** Minimum window for rates, because shorter ones would only measure noise. */
const MIN_RATE_WINDOW_MS = 1_000;
const MAX_SAMPLES = 2_000;
/** Number of pods that are read at once, before other work of the process gets its turn. */
const TURN_PODS = 10;
const VOLUME_METRICS = [
  ['capacity_bytes', 'capacityBytes'],
  ['available_bytes', 'availableBytes'],
  ['used_bytes', 'usedBytes'],
  ['inodes', 'inodes'],
  ['inodes_free', 'inodesFree'],
  ['inodes_used', 'inodesUsed'],
] as const;

export class StatsProvider {
  private readonly services: StatsServices;
  private readonly pods: Pick<PodTable, 'workers'>;
  private readonly volumes: (uid: Uid) => readonly VolumeUsage[];
  private readonly samples = new BoundedMap<string, { previous: Sample | undefined; latest: Sample }>(MAX_SAMPLES);

  constructor(services: StatsServices, pods: Pick<PodTable, 'workers'>, volumes: (uid: Uid) => readonly VolumeUsage[]) {
    this.services = services;
    this.pods = pods;
    this.volumes = volumes;
  }

  async summary(): Promise<object> {
    const { host, settings, clock } = this.services;
    const [usage, disk, images, pods] = await Promise.all([
      host.usage(),
      host.fileSystem(settings.paths.volumes),
      host.fileSystem(settings.paths.images),
      this.collect(),
    ]);
    const time = timestamp(usage.timestampMs);
    return {
      node: {
        nodeName: settings.nodeName,
        startTime: timestamp(usage.bootTimeMs),
        cpu: this.cpu('node', usage.timestampMs, usage.cpuUsageNanoSeconds),
        memory: nodeMemory(time, usage),
        fs: fileSystem(time, disk),
        runtime: { imageFs: fileSystem(time, images) },
        rlimit: { time, maxpid: usage.maxProcesses, curproc: usage.processes },
      },
      pods: pods.map((each) => this.podSummary(each, clock.nowMs())),
    };
  }

  /** Usage for the history. */
  async measure(): Promise<{
    readonly host: HostUsage;
    readonly diskUsedBytes: number | undefined;
    readonly pods: readonly PodStats[];
  }> {
    const { host, settings } = this.services;
    const [usage, disk, pods] = await Promise.all([
      host.usage(),
      host.fileSystem(settings.paths.volumes).catch(() => undefined),
      this.collect(),
    ]);
    const diskUsedBytes = disk === undefined ? undefined : disk.capacityBytes - disk.availableBytes;
    return { host: usage, diskUsedBytes, pods };
  }

  private podSummary(each: PodStats, nowMs: number): object {
    const { name = '', namespace = '' } = each.pod.metadata ?? {};
    const uid = toUid(each.pod.metadata?.uid);
    const time = timestamp(nowMs);
    return {
      podRef: { name, namespace, uid },
      startTime: timestamp(each.startedAtMs),
      ...volumeSummaries(this.volumes(uid)),
      containers: each.containers.map(({ status, stats }) => ({
        name: status.name,
        startTime: timestamp(status.startedAtMs),
        cpu: this.cpu(status.id, stats.timestampMs, stats.cpuUsageCoreNanoSeconds),
        memory: {
          time: timestamp(stats.timestampMs),
          usageBytes: stats.memoryUsageBytes,
          workingSetBytes: stats.memoryWorkingSetBytes,
          rssBytes: stats.memoryRssBytes,
        },
      })),
      ...(each.usage === undefined
        ? {}
        : {
            cpu: this.cpu(`pod/${uid}`, nowMs, each.usage.cpuUsageNanoSeconds),
            memory: {
              time,
              usageBytes: each.usage.memoryUsageBytes,
              workingSetBytes: each.usage.memoryWorkingSetBytes,
              rssBytes: each.usage.memoryRssBytes,
            },
            process_stats: { process_count: each.usage.pids },
          }),
    };
  }

  private cpu(key: string, atMs: number, nanoSeconds: number): object {
    const sample = { atMs, nanoSeconds };
    const known = this.samples.get(key);
    if (known === undefined) {
      this.samples.set(key, { previous: undefined, latest: sample });
    } else if (atMs - known.latest.atMs >= MIN_RATE_WINDOW_MS) {
      known.previous = known.latest;
      known.latest = sample;
    }
    const previous = known?.previous;
    const latest = known?.latest ?? sample;
    const rate =
      previous === undefined
        ? undefined
        : Math.max(0, Math.round(((latest.nanoSeconds - previous.nanoSeconds) * 1000) / (latest.atMs - previous.atMs)));
    return {
      time: timestamp(atMs),
      ...(rate === undefined ? {} : { usageNanoCores: rate }),
      usageCoreNanoSeconds: nanoSeconds,
    };
  }

  /** Metrics for the metrics server. */
  async resourceMetrics(): Promise<string> {
    const [usage, pods] = await Promise.all([this.services.host.usage(), this.collect()]);
    const text = new MetricsText();
    text.family('node_cpu_usage_seconds_total', 'counter', 'Cumulative cpu time consumed by the node in core-seconds');
    text.sample('node_cpu_usage_seconds_total', {}, usage.cpuUsageNanoSeconds / 1e9, usage.timestampMs);
    text.family('node_memory_working_set_bytes', 'gauge', 'Current working set of the node in bytes');
    text.sample('node_memory_working_set_bytes', {}, usage.memoryWorkingSetBytes, usage.timestampMs);
    const containers = pods.flatMap((each) =>
      each.containers.map(({ status, stats }) => ({
        labels: {
          container: status.name,
          namespace: each.pod.metadata?.namespace ?? '',
          pod: each.pod.metadata?.name ?? '',
        },
        status,
        stats,
      })),
    );
    text.family(
      'container_cpu_usage_seconds_total',
      'counter',
      'Cumulative cpu time consumed by the container in core-seconds',
    );
    for (const { labels, stats } of containers) {
      text.sample('container_cpu_usage_seconds_total', labels, stats.cpuUsageCoreNanoSeconds / 1e9, stats.timestampMs);
    }
    text.family('container_memory_working_set_bytes', 'gauge', 'Current working set of the container in bytes');
    for (const { labels, stats } of containers) {
      text.sample('container_memory_working_set_bytes', labels, stats.memoryWorkingSetBytes, stats.timestampMs);
    }
    text.family('container_start_time_seconds', 'gauge', 'Start time of the container since unix epoch in seconds');
    for (const { labels, status } of containers) {
      text.sample('container_start_time_seconds', labels, status.startedAtMs / 1000);
    }
    const measured = pods.filter((each) => each.usage !== undefined);
    text.family('pod_cpu_usage_seconds_total', 'counter', 'Cumulative cpu time consumed by the pod in core-seconds');
    for (const each of measured) {
      text.sample('pod_cpu_usage_seconds_total', podLabels(each.pod), (each.usage?.cpuUsageNanoSeconds ?? 0) / 1e9);
    }
    text.family('pod_memory_working_set_bytes', 'gauge', 'Current working set of the pod in bytes');
    for (const each of measured) {
      text.sample('pod_memory_working_set_bytes', podLabels(each.pod), each.usage?.memoryWorkingSetBytes ?? 0);
    }
    text.family(
      'resource_scrape_error',
      'gauge',
      '1 if there was an error while getting container metrics, 0 otherwise',
    );
    text.sample('resource_scrape_error', {}, 0);
    return text.toString();
  }

  /** Metrics of containers and pods in cAdvisor's format. */
  async cadvisorMetrics(): Promise<string> {
    const { host, settings } = this.services;
    const [info, pods] = await Promise.all([host.info(), this.collect()]);
    return cadvisorText(info, pods, settings.cgroupRoot);
  }

  /** Metrics of the kubelet itself. */
  ownMetrics(): string {
    const text = new MetricsText();
    const workers = this.pods.workers();
    const states = new Map<string, number>();
    for (const worker of workers) {
      for (const status of this.services.view.get(worker.uid).containers) {
        states.set(status.state, (states.get(status.state) ?? 0) + 1);
      }
    }
    text.family('kubelet_node_name', 'gauge', "The node's name. The count is always 1.");
    text.sample('kubelet_node_name', { node: this.services.settings.nodeName }, 1);
    text.family('kubelet_running_pods', 'gauge', 'Number of pods that have a running pod sandbox');
    text.sample('kubelet_running_pods', {}, workers.filter((worker) => !worker.finished).length);
    text.family('kubelet_running_containers', 'gauge', 'Number of containers currently running');
    for (const [state, count] of states) text.sample('kubelet_running_containers', { container_state: state }, count);
    const usages = workers.flatMap((worker) => [...this.volumes(worker.uid)]);
    for (const [name, amount] of VOLUME_METRICS) {
      text.family(`kubelet_volume_stats_${name}`, 'gauge', `${name} of the volume`);
      for (const usage of usages) {
        const [namespace = '', claim = ''] = usage.claim.split('/');
        const value = usage[amount];
        const labels = { namespace, persistentvolumeclaim: claim };
        if (value !== undefined) text.sample(`kubelet_volume_stats_${name}`, labels, value);
      }
    }
    const memory = process.memoryUsage();
    text.family('process_resident_memory_bytes', 'gauge', 'Resident memory size in bytes.');
    text.sample('process_resident_memory_bytes', {}, memory.rss);
    const { user, system } = process.cpuUsage();
    text.family('process_cpu_seconds_total', 'counter', 'Total user and system CPU time spent in seconds.');
    text.sample('process_cpu_seconds_total', {}, (user + system) / 1e6);
    return text.toString();
  }

  private async collect(): Promise<PodStats[]> {
    const { services } = this;
    const root = rootComponents(services.settings.cgroupRoot);
    const workers = this.pods.workers().filter((worker) => !worker.finished);
    const stats: PodStats[] = [];
    // The files of cgroups are read synchronously, so other work gets its turn in between.
    for (let at = 0; at < workers.length; at += TURN_PODS) {
      if (at > 0) await new Promise((resolve) => setImmediate(resolve));
      stats.push(...(await Promise.all(workers.slice(at, at + TURN_PODS).map((worker) => this.statsOf(worker, root)))));
    }
    return stats;
  }

  private async statsOf(worker: PodWorker, root: CgroupPath): Promise<PodStats> {
    const { services } = this;
    const running = services.view.get(worker.uid).containers.filter((status) => status.state === 'running');
    const [usage, containers] = await Promise.all([
      services.cgroups.usage(podPath(root, qosClassOf(worker.pod), worker.uid)),
      Promise.all(running.map(async (status) => ({ status, stats: await this.containerStats(status.id) }))),
    ]);
    return {
      pod: worker.pod,
      startedAtMs: Date.parse(worker.status.startTime ?? '') || 0,
      usage,
      address: worker.status.podIP,
      containers: containers.flatMap(({ status, stats }) => (stats === undefined ? [] : [{ status, stats }])),
    };
  }

  /** Returns undefined on failure, because the container may have ended or been removed since the last listing. */
  private containerStats(id: string): Promise<ContainerStats | undefined> {
    const { runtime, log } = this.services;
    return runtime.containerStats(id).catch((error: unknown) => {
      log.v(2, 'container not measured', { container: id, error: messageOf(error) });
      return undefined;
    });
  }
}

function volumeSummaries(usages: readonly VolumeUsage[]): { readonly volume?: readonly object[] } {
  if (usages.length === 0) return {};
  return {
    volume: usages.map(({ volume, claim, atMs, abnormal, ...amounts }) => {
      const [namespace, name] = claim.split('/');
      const health = abnormal === undefined ? {} : { volumeHealthStats: { abnormal: true } };
      return { time: timestamp(atMs), ...amounts, name: volume, pvcRef: { name, namespace }, ...health };
    }),
  };
}

const podLabels = (pod: Pod): Record<string, string> => ({
  namespace: pod.metadata?.namespace ?? '',
  pod: pod.metadata?.name ?? '',
});

function nodeMemory(time: string, usage: HostUsage): object {
  return {
    time,
    availableBytes: usage.memoryAvailableBytes,
    usageBytes: usage.memoryUsageBytes,
    workingSetBytes: usage.memoryWorkingSetBytes,
    rssBytes: usage.memoryRssBytes,
  };
}

function fileSystem(time: string, usage: FileSystemUsage): object {
  return {
    time,
    availableBytes: usage.availableBytes,
    capacityBytes: usage.capacityBytes,
    usedBytes: usage.capacityBytes - usage.availableBytes,
    inodes: usage.inodes,
    inodesFree: usage.inodesFree,
    inodesUsed: usage.inodes - usage.inodesFree,
  };
}

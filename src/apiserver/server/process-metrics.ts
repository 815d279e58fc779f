/** Process metrics with the names of the Prometheus client libraries. */
import type { ProcessFacts } from '../../base/linux/process-facts.ts';

/** Metrics in text format, without a trailing line break. Figures that the system does not provide are omitted. */
export async function processMetrics(facts: ProcessFacts | undefined): Promise<string> {
  const { user, system } = process.cpuUsage();
  const figures: (readonly [name: string, type: 'counter' | 'gauge', help: string, value: number | string])[] = [
    ['process_cpu_seconds_total', 'counter', 'Total user and system CPU time spent in seconds.', (user + system) / 1e6],
    ['process_resident_memory_bytes', 'gauge', 'Resident memory size in bytes.', process.memoryUsage.rss()],
    [
      'process_start_time_seconds',
      'gauge',
      'Start time of the process since unix epoch in seconds.',
      // The start time is constant, because alerting rules count its changes as restarts.
      (performance.timeOrigin / 1000).toFixed(2),
    ],
  ];
  const [open, limits, status] = await Promise.all([facts?.openFiles(), facts?.limits() ?? '', facts?.status() ?? '']);
  if (open !== undefined) figures.push(['process_open_fds', 'gauge', 'Number of open file descriptors.', open]);
  const most = /^Max open files +(\d+)/m.exec(limits)?.[1];
  if (most !== undefined) figures.push(['process_max_fds', 'gauge', 'Maximum number of open file descriptors.', most]);
  const virtual = /^VmSize:\s+(\d+) kB/m.exec(status)?.[1];
  if (virtual !== undefined)
    figures.push(['process_virtual_memory_bytes', 'gauge', 'Virtual memory size in bytes.', Number(virtual) * 1024]);
  return figures
    .map(([name, type, help, value]) => `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name} ${value}`)
    .join('\n');
}

/** Metrics of the usage history by scope. The order is part of the format of its files: append only. */

export type Scope = 'node' | 'slice' | 'pod' | 'container';
export const SCOPES: readonly Scope[] = ['node', 'slice', 'pod', 'container'];

export type Unit = 'cores' | 'bytes' | 'bytes/s' | 'ratio' | 'celsius' | 'seconds' | 'operations/s';

export interface MetricSpec {
  readonly name: string;
  readonly unit: Unit;
  readonly help: string;
  /** The value is the rate of a counter, per second. */
  readonly isRate?: boolean;
  /** Whether the peak of each minute and of each quarter of an hour is kept beside the average. */
  readonly peak?: boolean;
  /** Whether the oldest samples of this metric are removed before those of other metrics when the memory is used up. */
  readonly isSecondary?: boolean;
}

const rate = (name: string, unit: Unit, help: string): MetricSpec => ({ name, unit, help, isRate: true });
const gauge = (name: string, unit: Unit, help: string): MetricSpec => ({ name, unit, help });
const withPeak = (spec: MetricSpec): MetricSpec => ({ ...spec, peak: true });
const secondary = (spec: MetricSpec): MetricSpec => ({ ...spec, isSecondary: true });

const CPU = withPeak(rate('cpu', 'cores', 'CPU time'));
const MEMORY = gauge('memory', 'bytes', 'working set');
const DISK = [
  rate('diskRead', 'bytes/s', 'bytes read from disks'),
  rate('diskWrite', 'bytes/s', 'bytes written to disks'),
];
const NETWORK = [rate('networkReceive', 'bytes/s', 'bytes received'), rate('networkTransmit', 'bytes/s', 'bytes sent')];
const PRESSURE = [
  rate('pressureCpu', 'ratio', 'share of time in which a task waited for a CPU'),
  rate('pressureMemory', 'ratio', 'share of time in which a task waited for memory'),
  rate('pressureIo', 'ratio', 'share of time in which a task waited for a disk'),
];
const THROTTLING = rate('throttling', 'ratio', 'time in which the CPU limit stopped tasks, per time');

export const METRICS: Readonly<Record<Scope, readonly MetricSpec[]>> = {
  node: [
    CPU,
    MEMORY,
    ...[...DISK, ...NETWORK, ...PRESSURE].map(withPeak),
    withPeak(gauge('temperature', 'celsius', 'hottest thermal zone')),
    gauge('throttling', 'ratio', 'share of time in which heat or low voltage slowed the processor'),
    rate('flashWrites', 'bytes/s', 'bytes written to flash disks'),
    gauge('diskUsed', 'bytes', 'used bytes of the file system of the volumes'),
    withPeak(gauge('storeLatency', 'seconds', 'average duration of a flush of the log of the store on this host')),
    gauge('storeFlushes', 'operations/s', 'flushes of the log of the store on this host'),
    withPeak(gauge('apiRequests', 'operations/s', 'requests to the API server of this host')),
    gauge('apiErrors', 'operations/s', 'requests that the API server of this host answered with status 5xx'),
  ],
  slice: [CPU, MEMORY, ...DISK, ...PRESSURE, THROTTLING],
  pod: [CPU, MEMORY, ...[...DISK, ...NETWORK, ...PRESSURE, THROTTLING].map(secondary)],
  container: [CPU, MEMORY, secondary(THROTTLING)],
};

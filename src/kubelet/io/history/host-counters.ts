/** Counters of this host from /proc and /sys. */
import { readFileSync } from 'node:fs';
import { access, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { HostCounters, Pressure, Traffic } from '../../history/port.ts';

const SECTOR_BYTES = 512;
/** Interval at which disks, network interfaces and temperature sensors are searched again. */
const DEVICES_MS = 300_000;
const MAX_DEVICES = 64;
/** Block devices that are not counted: they are not disks, or another device counts the same bytes. */
const NOT_DISKS = /^(?:loop|ram|zram|dm-|md|sr|nbd|fd)/;
/** Bits of the firmware's `get_throttled` value for the present state: low voltage, frequency capped, throttled. */
const THROTTLED_NOW = 0b111;

interface Devices {
  readonly atMs: number;
  readonly disks: ReadonlySet<string>;
  readonly flash: ReadonlySet<string>;
  readonly links: ReadonlySet<string>;
  readonly zones: readonly string[];
  readonly throttleCounts: readonly string[];
}

/** `root`: directory that contains proc and sys. */
export function createHostCounters(options: {
  readonly root: string;
  readonly monotonicMs: () => number;
}): () => Promise<HostCounters> {
  const { root, monotonicMs } = options;
  let devices: Devices | undefined;
  let throttleCount: number | undefined;
  return async () => {
    if (devices === undefined || monotonicMs() - devices.atMs > DEVICES_MS)
      devices = { ...(await findDevices(root)), atMs: monotonicMs() };
    const [temperatures, counts, firmware] = await Promise.all([
      Promise.all(devices.zones.map((path) => numberOf(path))),
      Promise.all(devices.throttleCounts.map((path) => numberOf(path))),
      textOf(join(root, 'sys/devices/platform/soc/soc:firmware/get_throttled')),
    ]);
    const celsius = temperatures.filter((milli) => milli > 0 && milli < 200_000);
    const count = counts.length === 0 ? undefined : Math.max(0, ...counts.filter((each) => each > 0));
    const flags = Number.parseInt(firmware.trim(), 16);
    const isThrottled = !Number.isNaN(flags)
      ? (flags & THROTTLED_NOW) !== 0
      : count === undefined
        ? undefined
        : throttleCount !== undefined && count > throttleCount;
    throttleCount = count;
    return {
      ...trafficOf(root, devices.links),
      ...disksOf(kernelText(join(root, 'proc/diskstats')), devices),
      pressure: pressureOf(root),
      celsius: celsius.length === 0 ? undefined : Math.max(...celsius) / 1_000,
      isThrottled,
    };
  };
}

async function findDevices(root: string): Promise<Omit<Devices, 'atMs'>> {
  const [blocks, interfaces, thermal, processors] = await Promise.all([
    entriesOf(join(root, 'sys/block')),
    entriesOf(join(root, 'sys/class/net')),
    entriesOf(join(root, 'sys/class/thermal')),
    entriesOf(join(root, 'sys/devices/system/cpu')),
  ]);
  const disks = blocks.filter((name) => !NOT_DISKS.test(name)).slice(0, MAX_DEVICES);
  const isFlash = async (name: string): Promise<boolean> =>
    name.startsWith('mmcblk') ||
    (!name.startsWith('vd') && (await textOf(join(root, 'sys/block', name, 'queue/rotational'))).trim() === '0');
  const flash = await Promise.all(disks.map(isFlash));
  const withDevice = await Promise.all(interfaces.map((name) => exists(join(root, 'sys/class/net', name, 'device'))));
  const counts = processors
    .filter((name) => /^cpu\d+$/.test(name))
    .slice(0, MAX_DEVICES)
    .map((name) => join(root, 'sys/devices/system/cpu', name, 'thermal_throttle/package_throttle_count'));
  const present = await Promise.all(counts.map(exists));
  return {
    disks: new Set(disks),
    flash: new Set(disks.filter((_, at) => flash[at])),
    links: new Set(interfaces.filter((_, at) => withDevice[at])),
    zones: thermal
      .filter((name) => /^thermal_zone\d+$/.test(name))
      .slice(0, MAX_DEVICES)
      .map((name) => join(root, 'sys/class/thermal', name, 'temp')),
    throttleCounts: counts.filter((_, at) => present[at]),
  };
}

/** Source: proc_net(5), net/dev. The host receives what the pod sends. */
function trafficOf(root: string, devices: ReadonlySet<string>): Pick<HostCounters, 'network' | 'pods'> {
  const links = new Map<string, Traffic>();
  for (const line of kernelText(join(root, 'proc/net/dev')).split('\n').slice(2)) {
    const colon = line.lastIndexOf(':');
    if (colon < 0) continue;
    const fields = line
      .slice(colon + 1)
      .trim()
      .split(/\s+/);
    links.set(line.slice(0, colon).trim(), { receivedBytes: Number(fields[0]), sentBytes: Number(fields[8]) });
  }
  const pods = new Map<string, Traffic>();
  const podLinks = new Set<string>();
  for (const [address, link] of hostRoutes(root)) {
    const traffic = links.get(link);
    if (traffic === undefined) continue;
    podLinks.add(link);
    pods.set(address, { receivedBytes: traffic.sentBytes, sentBytes: traffic.receivedBytes });
  }
  const own = [...links].filter(([name]) =>
    devices.size > 0 ? devices.has(name) : name !== 'lo' && !podLinks.has(name),
  );
  const sum = (field: keyof Traffic): number => own.reduce((total, [, each]) => total + each[field], 0);
  return { network: { receivedBytes: sum('receivedBytes'), sentBytes: sum('sentBytes') }, pods };
}

/**
 * Pairs of address and interface for routes to a single IPv4 address. Source: proc_net(5), net/route (little-endian
 * words).
 */
function* hostRoutes(root: string): Generator<readonly [string, string]> {
  for (const line of kernelText(join(root, 'proc/net/route')).split('\n').slice(1)) {
    const [link, destination = '', , , , , , mask] = line.split('\t');
    if (link === undefined || mask?.trim() !== 'FFFFFFFF') continue;
    const bytes = [6, 4, 2, 0].map((at) => Number.parseInt(destination.slice(at, at + 2), 16));
    yield [bytes.join('.'), link];
  }
}

/** Source: kernel documentation, iostats. */
function disksOf(
  text: string,
  { disks, flash }: Devices,
): Pick<HostCounters, 'diskReadBytes' | 'diskWrittenBytes' | 'flashWrittenBytes'> {
  let [read, written, worn, isKnown] = [0, 0, 0, false];
  for (const line of text.split('\n')) {
    const fields = line.trim().split(/\s+/);
    const name = fields[2] ?? '';
    if (!disks.has(name)) continue;
    isKnown = true;
    read += (Number(fields[5]) || 0) * SECTOR_BYTES;
    written += (Number(fields[9]) || 0) * SECTOR_BYTES;
    if (flash.has(name)) worn += (Number(fields[9]) || 0) * SECTOR_BYTES;
  }
  return {
    diskReadBytes: isKnown ? read : undefined,
    diskWrittenBytes: isKnown ? written : undefined,
    flashWrittenBytes: flash.size > 0 && isKnown ? worn : undefined,
  };
}

function pressureOf(root: string): Pressure {
  const seconds = (resource: string): number | undefined => {
    const total = /^some .*\btotal=(\d+)/m.exec(kernelText(join(root, 'proc/pressure', resource)))?.[1];
    return total === undefined ? undefined : Number(total) / 1e6;
  };
  return { cpuSeconds: seconds('cpu'), memorySeconds: seconds('memory'), ioSeconds: seconds('io') };
}

/**
 * Reads synchronously, because procfs is not on a disk: a synchronous read takes microseconds, an asynchronous read ten
 * times as long.
 */
function kernelText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Reads the file of a sensor asynchronously, because a sensor may be behind a bus or the firmware. */
async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch {
    return '';
  }
}

async function numberOf(path: string): Promise<number> {
  const text = (await textOf(path)).trim();
  return text === '' ? Number.NaN : Number(text);
}

const entriesOf = (path: string): Promise<string[]> => readdir(path).catch(() => []);
const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

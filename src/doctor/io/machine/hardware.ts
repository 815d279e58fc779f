/** Reads facts about memory, processor, temperatures, power, clock, host name and time zone of this machine. */
import { access, readlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { ClockFacts, Facts, MemoryFacts, PowerFacts, ProcessorFacts } from '../../port.ts';
import { entriesOf, numberOf, runProgram, textIfPresent, textOf } from './read.ts';

const KIB = 1024;
const PROGRAM_MS = 3000;
const MAX_TRIPS = 12;

export async function readMemory(machine: string): Promise<MemoryFacts> {
  const [info, swaps, pressure] = await Promise.all([
    textOf(join(machine, 'proc/meminfo')),
    textOf(join(machine, 'proc/swaps')),
    textOf(join(machine, 'proc/pressure/memory')),
  ]);
  const kib = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(info)?.[1] ?? 0) * KIB;
  const full = /^full .*\bavg60=([\d.]+)/m.exec(pressure)?.[1];
  return {
    totalBytes: kib('MemTotal'),
    availableBytes: kib('MemAvailable'),
    swaps: swaps
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter(([device]) => device !== undefined && device !== '')
      .map(([device = '', , size, used]) => ({ device, bytes: Number(size) * KIB, usedBytes: Number(used) * KIB })),
    fullPercent: full === undefined ? undefined : Number(full),
  };
}

export async function readProcessor(machine: string): Promise<ProcessorFacts> {
  const cpus = join(machine, 'sys/devices/system/cpu');
  const policies = (await entriesOf(join(cpus, 'cpufreq'))).filter((name) => name.startsWith('policy'));
  const cores = (await entriesOf(cpus)).filter((name) => /^cpu\d+$/.test(name));
  const counts = await Promise.all(
    cores.map((core) => numberOf(join(cpus, core, 'thermal_throttle/package_throttle_count'))),
  );
  const zones = join(machine, 'sys/class/thermal');
  const names = (await entriesOf(zones)).filter((name) => name.startsWith('thermal_zone'));
  return {
    policies: await Promise.all(
      policies.slice(0, 256).map(async (name) => {
        const at = (file: string): string => join(cpus, 'cpufreq', name, file);
        return {
          name,
          governor: (await textOf(at('scaling_governor'), 64)).trim(),
          limitKhz: (await numberOf(at('scaling_max_freq'))) || 0,
          maxKhz: (await numberOf(at('cpuinfo_max_freq'))) || 0,
        };
      }),
    ),
    throttleCount: Math.max(0, ...counts.filter((count) => count > 0)),
    zones: (await Promise.all(names.slice(0, 64).map((name) => zoneOf(join(zones, name))))).flat(),
  };
}

async function zoneOf(directory: string): Promise<ProcessorFacts['zones']> {
  const milli = await numberOf(join(directory, 'temp'));
  if (Number.isNaN(milli)) return [];
  const trips = await Promise.all(
    Array.from({ length: MAX_TRIPS }, async (_, at) => ({
      type: (await textOf(join(directory, `trip_point_${at}_type`), 64)).trim(),
      celsius: (await numberOf(join(directory, `trip_point_${at}_temp`))) / 1000,
    })),
  );
  const trip = (type: string): number | undefined =>
    trips.find((each) => each.type === type && each.celsius > 0)?.celsius;
  return [
    {
      name: (await textOf(join(directory, 'type'), 64)).trim(),
      celsius: Math.round(milli / 100) / 10,
      passiveCelsius: trip('passive'),
      criticalCelsius: trip('critical'),
    },
  ];
}

/** Reads the power state. Source: documentation of vcgencmd get_throttled; kernel driver raspberrypi-hwmon. */
export async function readPower(machine: string): Promise<PowerFacts> {
  const text = await textIfPresent(join(machine, 'sys/devices/platform/soc/soc:firmware/get_throttled'), 64);
  const throttled = text === undefined ? Number.NaN : Number.parseInt(text.trim(), 16);
  const monitors = join(machine, 'sys/class/hwmon');
  let alarm: boolean | undefined;
  for (const name of await entriesOf(monitors)) {
    if ((await textOf(join(monitors, name, 'name'), 64)).trim() !== 'rpi_volt') continue;
    alarm = (await numberOf(join(monitors, name, 'in0_lcrit_alarm'))) === 1;
  }
  return { throttled: Number.isNaN(throttled) ? undefined : throttled, alarm };
}

/** Model of the board from the device tree or DMI; '' if unknown. */
export async function readModel(machine: string): Promise<string> {
  const [tree, product] = await Promise.all([
    textOf(join(machine, 'proc/device-tree/model'), 256),
    textOf(join(machine, 'sys/class/dmi/id/product_name'), 256),
  ]);
  return (tree || product).replaceAll('\0', '').trim();
}

export async function readClock(
  machine: string,
  times: Pick<ClockFacts, 'nowMs' | 'releasedMs' | 'floorMs'>,
): Promise<ClockFacts> {
  return {
    ...times,
    clocks: await entriesOf(join(machine, 'sys/class/rtc')),
    synchronized: await synchronizedBy(machine),
  };
}

async function synchronizedBy(machine: string): Promise<boolean | undefined> {
  if (await exists(join(machine, 'run/systemd/timesync/synchronized'))) return true;
  if (machine !== '/') return undefined;
  const shown = await runProgram('timedatectl', ['show', '-p', 'NTPSynchronized', '--value'], PROGRAM_MS).catch(
    () => undefined,
  );
  const value = shown?.stdout.trim();
  return value === 'yes' ? true : value === 'no' ? false : undefined;
}

export async function readTimeZone(machine: string): Promise<Facts['timeZone']> {
  const path = join(machine, 'etc/localtime');
  const link = await readlink(path).catch(() => undefined);
  const target = link === undefined ? path : join(machine, resolve('/etc', link));
  return {
    link,
    exists: await exists(target),
    database: (await entriesOf(join(machine, 'usr/share/zoneinfo'))).length > 0,
  };
}

export async function readIdentity(machine: string): Promise<Facts['identity']> {
  const [name, file, machineId] = await Promise.all([
    textOf(join(machine, 'proc/sys/kernel/hostname'), 256),
    textOf(join(machine, 'etc/hostname'), 256),
    textOf(join(machine, 'etc/machine-id'), 256),
  ]);
  return { hostName: name.trim() || file.trim(), machineId: machineId.trim() };
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

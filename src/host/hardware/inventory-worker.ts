/**
 * Reads a host's hardware with systeminformation, posts it and exits. The library runs programs synchronously and
 * through a shell, so it is loaded only in this thread of a short-lived process
 * (docs/decisions/0007-node-facts-from-proc.md).
 */

import { execFile } from 'node:child_process';
import { parentPort } from 'node:worker_threads';
import type { Systeminformation as Facts } from 'systeminformation';
import * as systeminformation from 'systeminformation';
import { decodeJson, fields, own } from '../../base/decode.ts';
import { messageOf } from '../../base/errors.ts';
import type { Disk, Hardware, MemoryModule, NetworkCard, Smart } from './inventory.ts';

/** Time limit of each section. smartctl(8) takes seconds for a disk that must spin up first. */
const SECTION_TIMEOUT_MS = 20_000;
const SMART_BYTES = 4 << 20;

const problems: string[] = [];

async function section<T>(name: string, read: () => Promise<T>): Promise<T | undefined> {
  const timeout = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => timeout.reject(new Error(`no answer within ${SECTION_TIMEOUT_MS / 1000} s`)),
    SECTION_TIMEOUT_MS,
  );
  try {
    return await Promise.race([read(), timeout.promise]);
  } catch (error) {
    problems.push(`${name}: ${messageOf(error)}`);
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * The text that a host reports; undefined for `-`, an empty string or null, by which the library reports a missing
 * value.
 */
function given(text: string | null | undefined): string | undefined {
  // Control characters are removed, because USB devices choose their text and it is printed on terminals.
  const trimmed = text?.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '').trim();
  return trimmed === undefined || trimmed === '' || trimmed === '-' ? undefined : trimmed;
}
const positive = (value: number | null | undefined): number | undefined =>
  typeof value === 'number' && value > 0 ? value : undefined;

/** Removes undefined members. */
function present<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}

async function readHardware(): Promise<Hardware> {
  const [system, bios, chassis, cpu, mem, modules, disks, cards, usb, graphics, temperature] = await Promise.all([
    section('system', () => systeminformation.system()),
    section('firmware', () => systeminformation.bios()),
    section('chassis', () => systeminformation.chassis()),
    section('processor', () => systeminformation.cpu()),
    section('memory', () => systeminformation.mem()),
    section('memory modules', () => systeminformation.memLayout()),
    section('disks', readDisks),
    section('network cards', () => systeminformation.networkInterfaces()),
    section('usb', () => systeminformation.usb()),
    section('graphics', () => systeminformation.graphics()),
    section('temperatures', () => systeminformation.cpuTemperature()),
  ]);
  return {
    system: present({
      manufacturer: given(system?.manufacturer),
      model: given(system?.model),
      serial: given(system?.serial),
      uuid: given(system?.uuid),
      firmware: given([bios?.vendor, bios?.version, bios?.releaseDate].filter(Boolean).join(' ')),
      chassis: given(chassis?.type),
      virtual: system?.virtual === true ? (given(system.virtualHost) ?? 'unknown') : undefined,
    }),
    processor: present({
      model: given([cpu?.manufacturer, cpu?.brand].filter(Boolean).join(' ')),
      sockets: cpu?.processors ?? 0,
      cores: cpu?.physicalCores ?? 0,
      threads: cpu?.cores ?? 0,
      maxMegahertz: positive(Math.round((cpu?.speedMax ?? 0) * 1000)),
      virtualization: cpu?.virtualization ?? false,
    }),
    memory: {
      totalBytes: mem?.total ?? 0,
      swapBytes: mem?.swaptotal ?? 0,
      // Without DMI, the library reports the total memory as one module with an empty type, which is omitted.
      modules: (modules ?? []).filter((each) => each.type !== '').map(moduleOf),
    },
    disks: disks ?? [],
    networkCards: (Array.isArray(cards) ? cards : cards === undefined ? [] : [cards])
      .filter((card) => !card.virtual && !card.internal)
      .map(cardOf),
    usb: (usb ?? []).map((each) =>
      present({
        bus: each.bus,
        device: each.deviceId,
        name: given(each.name),
        vendor: given(each.vendor) ?? given(each.manufacturer),
        type: given(each.type),
      }),
    ),
    graphics: (graphics?.controllers ?? []).map((each) =>
      present({
        vendor: given(each.vendor),
        model: given(each.model),
        busAddress: given(each.busAddress),
        memoryBytes: positive((each.vram ?? 0) * (1 << 20)),
      }),
    ),
    temperatures: present({
      processorCelsius: positive(temperature?.main),
      coresCelsius: temperature?.cores ?? [],
      chipsetCelsius: positive(temperature?.chipset),
    }),
    problems,
  };
}

/**
 * Combines two functions of the library. `diskLayout` reports model and SMART but omits disks without a model, such as
 * virtio disks; `blockDevices` reports all disks.
 */
async function readDisks(): Promise<Disk[]> {
  const [layout, devices] = await Promise.all([systeminformation.diskLayout(), systeminformation.blockDevices()]);
  const known = new Set(layout.map((each) => each.device));
  const others = devices
    .filter((each) => each.type === 'disk' && each.size > 0 && !known.has(`/dev/${each.name}`))
    .map((each) =>
      present({
        device: `/dev/${each.name}`,
        type: given(each.physical),
        model: given(each.model),
        serial: given(each.serial),
        bytes: each.size,
      }),
    );
  return Promise.all([...layout.map(diskOf), ...others].map(withSmart));
}

/**
 * Reads SMART data of one disk. The library discards the data of all disks if one disk, such as a USB stick, has no
 * SMART status.
 */
async function withSmart(disk: Disk): Promise<Disk> {
  if (disk.smart !== undefined) return disk;
  const stdout = await new Promise<string>((resolve) => {
    // The exit code is ignored: it is a bit mask with the state of the disk (smartctl(8)), so it may be non-zero
    // although the output is complete.
    execFile('smartctl', ['-a', '-j', disk.device], { maxBuffer: SMART_BYTES }, (_, output) => resolve(output));
  });
  try {
    const data = decodeJson(own<Facts.SmartData>(fields), stdout, 'smartctl');
    const smart = smartOf(data);
    const temperatureCelsius = disk.temperatureCelsius ?? positive(data.temperature?.current);
    return { ...disk, ...present({ temperatureCelsius, smart }) };
  } catch {
    // smartctl is missing or does not support JSON.
    return disk;
  }
}

function diskOf(disk: Facts.DiskLayoutData): Disk {
  return present({
    device: disk.device,
    type: given(disk.type),
    model: given(disk.name),
    serial: given(disk.serialNum),
    firmware: given(disk.firmwareRevision),
    bytes: disk.size,
    temperatureCelsius: positive(disk.temperature),
    smart: smartOf(disk.smartData),
  });
}

function smartOf(data: Facts.SmartData | undefined): Smart | undefined {
  // smartctl reports no status for a disk that it cannot open.
  if (typeof data?.smart_status?.passed !== 'boolean') return undefined;
  return present({
    passed: data.smart_status.passed,
    powerOnHours: data.power_on_time?.hours,
    percentageUsed: data.nvme_smart_health_information_log?.percentage_used,
    attributes: (data.ata_smart_attributes?.table ?? []).map((each) => ({
      id: each.id,
      name: each.name,
      value: each.value,
      worst: each.worst,
      threshold: each.thresh,
      raw: each.raw.string,
    })),
  });
}

function moduleOf(module: Facts.MemLayoutData): MemoryModule {
  return present({
    slot: given(module.bank),
    bytes: module.size,
    type: given(module.type),
    megahertz: positive(module.clockSpeed),
    manufacturer: given(module.manufacturer),
    part: given(module.partNum),
    serial: given(module.serialNum),
  });
}

function cardOf(card: Facts.NetworkInterfacesData): NetworkCard {
  return present({
    name: card.iface,
    mac: given(card.mac),
    state: card.operstate,
    megabitsPerSecond: positive(card.speed),
    duplex: given(card.duplex),
    mtu: positive(card.mtu),
    addresses: [card.ip4, card.ip6].filter((address) => address !== ''),
  });
}

// A rejection ends the thread with an error event, which rejects the call of `readHardware` in the main thread.
void readHardware().then((hardware) => parentPort?.postMessage(hardware));

/**
 * Facts about disks: file systems, flash wear, writes, and the size of the journal. File systems are read by child
 * processes.
 */
import { lstat, mkdtemp, open, realpath, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { messageOf } from '../../../base/errors.ts';
import type { AreaFacts, DiskWrites, Facts, FlashFacts } from '../../port.ts';
import { type Mount, parseMounts } from './kernel.ts';
import { entriesOf, numberOf, runProgram, textIfPresent, textOf } from './read.ts';

const PROBE_MS = 5000;
const FSYNC_MS = 25_000;
const SAMPLES = 9;
const PAGE_BYTES = 4096;
const SECTOR_BYTES = 512;
const MAX_JOURNAL_FILES = 20_000;

interface Measured {
  readonly directory: string;
  readonly bytes: number;
  readonly freeBytes: number;
  readonly inodes: number;
  readonly freeInodes: number;
}

/**
 * Sizes of the file system that contains a directory. If the directory does not exist, its nearest existing parent is
 * used. Runs stat(1), because a child process can be killed if the file system hangs.
 */
async function measureDirectory(path: string, timeoutMs: number): Promise<Measured> {
  for (let directory = path; ; directory = dirname(directory)) {
    const { code, stdout, stderr } = await runProgram('stat', ['-f', '-c', '%S %b %a %c %d', directory], timeoutMs);
    if (code === 0) {
      const [size = 0, all = 0, free = 0, inodes = 0, freeInodes = 0] = stdout.trim().split(' ').map(Number);
      const real = (await runProgram('readlink', ['-f', directory], timeoutMs)).stdout.trim();
      return { directory: real, bytes: all * size, freeBytes: free * size, inodes, freeInodes };
    }
    if (directory === dirname(directory)) throw new Error(stderr.trim());
  }
}

/** Measures how long a write of one page with fsync takes. Called in a child process, because it may hang. */
export async function measureFsync(path: string): Promise<Facts['fsync']> {
  const directory = await existing(path);
  const temporary = await mkdtemp(join(directory, '.doctor-'));
  try {
    const file = await open(join(temporary, 'page'), 'w', 0o600);
    try {
      const page = Buffer.alloc(PAGE_BYTES, 1);
      const times: number[] = [];
      for (let at = 0; at < SAMPLES; at++) {
        const began = performance.now();
        await file.write(page, 0, PAGE_BYTES, at * PAGE_BYTES);
        await file.sync();
        times.push(performance.now() - began);
      }
      times.sort((left, right) => left - right);
      return { directory, medianMs: times[SAMPLES >> 1] ?? 0, worstMs: times.at(-1) ?? 0 };
    } finally {
      await file.close();
    }
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

async function existing(path: string): Promise<string> {
  for (let directory = path; ; directory = dirname(directory)) {
    const found = await realpath(directory).catch(() => undefined);
    if (found !== undefined) return found;
    if (directory === dirname(directory)) return directory;
  }
}

export async function readAreas(
  machine: string,
  areas: readonly { readonly directory: string; readonly what: string }[],
  timeoutMs = PROBE_MS,
): Promise<AreaFacts[]> {
  const mounts = parseMounts(await textOf(join(machine, 'proc/self/mountinfo'), 8 << 20));
  return Promise.all(
    areas.map(async ({ directory, what }) => {
      try {
        const measured = await measureDirectory(directory, timeoutMs);
        const mount = mountOf(mounts, measured.directory);
        const { bytes, freeBytes, inodes, freeInodes } = measured;
        return {
          directory,
          what,
          bytes,
          freeBytes,
          inodes,
          freeInodes,
          ...(mount === undefined
            ? {}
            : { mount: mount.point, device: mount.device, type: mount.type, options: mount.options }),
        };
      } catch (error) {
        return { directory, what, problem: messageOf(error) };
      }
    }),
  );
}

/**
 * Runs `measureFsync` in a child process. `helper`: program and arguments of a command that prints its result as JSON.
 */
export async function readFsync(helper: readonly string[], directory: string): Promise<Facts['fsync']> {
  const [program = '', ...first] = helper;
  const { code, stdout, stderr } = await runProgram(program, [...first, 'fsync', directory], FSYNC_MS);
  if (code !== 0) throw new Error(`${directory}: ${stderr.trim().split('\n')[0]}`);
  return JSON.parse(stdout);
}

/**
 * Mount that contains the directory: the one with the longest mount point. Of equal mount points, the last one is
 * visible.
 */
function mountOf(mounts: readonly Mount[], directory: string): Mount | undefined {
  let found: Mount | undefined;
  for (const mount of mounts) {
    const { point } = mount;
    const contains = point === '/' || directory === point || directory.startsWith(`${point}/`);
    if (contains && point.length >= (found?.point.length ?? 0)) found = mount;
  }
  return found;
}

/** Wear of eMMC devices, which is reported in steps of ten percent. Source: kernel documentation, mmc-dev-attrs. */
export async function readMmc(machine: string): Promise<FlashFacts[]> {
  const names = (await entriesOf(join(machine, 'sys/block'))).filter((name) => /^mmcblk\d+$/.test(name));
  const found = await Promise.all(
    names.map(async (name): Promise<FlashFacts[]> => {
      const at = (file: string): Promise<string> => textOf(join(machine, 'sys/block', name, 'device', file), 256);
      const [life, reserve, model] = await Promise.all([at('life_time'), at('pre_eol_info'), at('name')]);
      const estimates = life
        .trim()
        .split(/\s+/)
        .map((each) => Number.parseInt(each, 16));
      const steps = Math.max(0, ...estimates.filter((each) => each > 0));
      if (steps === 0) return [];
      const reserved = Number.parseInt(reserve.trim(), 16);
      return [
        {
          device: `/dev/${name}`,
          model: model.trim(),
          usedPercent: steps * 10,
          reserve: reserved > 0 ? reserved : undefined,
          smartPassed: undefined,
        },
      ];
    }),
  );
  return found.flat();
}

/** Bytes written to each disk since the boot. Source: kernel documentation, block/stat. */
export async function readWrites(machine: string): Promise<Facts['writes']> {
  const upSeconds = Number((await textOf(join(machine, 'proc/uptime'), 64)).split(' ')[0]);
  const names = (await entriesOf(join(machine, 'sys/block'))).filter(
    (name) => !/^(?:loop|ram|zram|dm-|sr|nbd)/.test(name),
  );
  const disks = await Promise.all(
    names.slice(0, 64).map(async (name): Promise<DiskWrites> => {
      const at = (file: string): string => join(machine, 'sys/block', name, file);
      const [stat, size, rotational, removable, model] = await Promise.all([
        textOf(at('stat'), 1024),
        numberOf(at('size')),
        numberOf(at('queue/rotational')),
        numberOf(at('removable')),
        textOf(at('device/model'), 256),
      ]);
      return {
        device: `/dev/${name}`,
        model: model.trim(),
        removable: removable === 1,
        flash: name.startsWith('mmcblk') || (rotational === 0 && !name.startsWith('vd')),
        sizeBytes: (size || 0) * SECTOR_BYTES,
        writtenBytes: (Number(stat.trim().split(/\s+/)[6]) || 0) * SECTOR_BYTES,
      };
    }),
  );
  return { upMs: (upSeconds || 0) * 1000, disks: disks.filter(({ sizeBytes }) => sizeBytes > 0) };
}

export async function readJournal(machine: string): Promise<Facts['journal']> {
  for (const directory of ['var/log/journal', 'run/log/journal']) {
    const bytes = await sizeOf(join(machine, directory));
    if (bytes !== undefined) return { bytes, directory: `/${directory}`, limit: await journalLimit(machine) };
  }
  return { bytes: 0, directory: '/var/log/journal', limit: await journalLimit(machine) };
}

async function journalLimit(machine: string): Promise<string | undefined> {
  const directory = join(machine, 'etc/systemd/journald.conf.d');
  const files = [
    join(machine, 'etc/systemd/journald.conf'),
    ...(await entriesOf(directory)).map((name) => join(directory, name)),
  ];
  for (const file of files) {
    const limit = /^\s*SystemMaxUse=(\S+)/m.exec((await textIfPresent(file)) ?? '')?.[1];
    if (limit !== undefined) return limit;
  }
  return undefined;
}

async function sizeOf(directory: string): Promise<number | undefined> {
  const machines = await entriesOf(directory);
  if (machines.length === 0) return undefined;
  let bytes = 0;
  let files = 0;
  for (const machine of machines)
    for (const name of await entriesOf(join(directory, machine))) {
      files += 1;
      if (files > MAX_JOURNAL_FILES) return bytes;
      const found = await lstat(join(directory, machine, name)).catch(() => undefined);
      bytes += (found?.blocks ?? 0) * SECTOR_BYTES;
    }
  return bytes;
}

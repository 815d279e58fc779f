/** Facts about this host and its load, from /proc, /sys and os-release. */
import { execFile } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile, stat, statfs } from 'node:fs/promises';
import { availableParallelism, hostname } from 'node:os';
import { join } from 'node:path';
import type { FileSystemUsage, HostFacts, HostInfo, HostUsage } from '../../port.ts';
import { readHugePages, readTopology } from './topology.ts';

const FOREIGN_MS = 10_000;
const CAP_SYS_RESOURCE = 24n;
const MIN_OOM_SCORE = -1000;
/** USER_HZ is 100 on every architecture that Node supports. */
const NANOSECONDS_PER_TICK = 10_000_000;
const GO_ARCHITECTURE: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64', arm: 'arm', ia32: '386' };

/** The host's resolver, and the servers of systemd-resolved behind its stub. Source: systemd-resolved(8). */
const RESOLVER_FILES = { own: '/etc/resolv.conf', behindStub: '/run/systemd/resolve/resolv.conf' };

/** `root`: the host's `--root`. Hosts with different roots on one machine get different machine IDs. */
export function createHostFacts(options: {
  readonly root: string;
  readonly nowMs: () => number;
  readonly resolverFiles?: typeof RESOLVER_FILES;
}): HostFacts {
  return {
    info: () => readInfo(options.root),
    topology: readTopology,
    usage: async () => readUsage(options.nowMs()),
    fileSystem: readFileSystem,
    foreignFileSystem: readForeignFileSystem,
    // The operation itself does not matter: it needs a thread of the pool, like every file operation.
    touchFile: async () => void (await stat('/proc/self')),
    resolvConf: () => readResolvConf(options.resolverFiles ?? RESOLVER_FILES),
    hosts: () => text('/etc/hosts'),
  };
}

/**
 * Returns the host's resolv.conf. If it only names a stub resolver on a loopback address, which pods cannot reach,
 * returns the servers behind the stub.
 */
async function readResolvConf({ own, behindStub }: typeof RESOLVER_FILES): Promise<string> {
  const content = await text(own);
  const servers = [...content.matchAll(/^\s*nameserver\s+(\S+)/gm)].map(([, address = '']) => address);
  if (servers.length === 0 || !servers.every((address) => /^127\.0\.0\.5[34]$/.test(address))) return content;
  const behind = await text(behindStub);
  return /^\s*nameserver\s/m.test(behind) ? behind : content;
}

async function readInfo(root: string): Promise<HostInfo> {
  const [id, productUuid, bootId, release, osRelease, memory, status, oomScore, hugePages] = await Promise.all([
    machineIdOf(root),
    text('/sys/class/dmi/id/product_uuid'),
    text('/proc/sys/kernel/random/boot_id'),
    text('/proc/sys/kernel/osrelease'),
    text('/etc/os-release'),
    text('/proc/meminfo'),
    text('/proc/self/status'),
    text('/proc/self/oom_score_adj'),
    readHugePages(),
  ]);
  const capabilities = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)/m.exec(status)?.[1] ?? '0'}`);
  const mayLower = ((capabilities >> CAP_SYS_RESOURCE) & 1n) === 1n;
  return {
    hostname: hostname().toLowerCase(),
    machineId: id,
    // Boards without DMI have no product UUID; the machine id is used instead, as in upstream's cadvisor.
    systemUuid: productUuid.trim() === '' ? id : productUuid.trim(),
    bootId: bootId.trim(),
    kernelVersion: release.trim(),
    osImage: parseOsRelease(osRelease)['PRETTY_NAME'] ?? 'Linux',
    operatingSystem: 'linux',
    architecture: GO_ARCHITECTURE[process.arch] ?? process.arch,
    cpus: availableParallelism(),
    memoryBytes: meminfo(memory, 'MemTotal'),
    hugePages,
    swapBytes: meminfo(memory, 'SwapTotal'),
    oomScoreFloor: mayLower ? MIN_OOM_SCORE : Number(oomScore.trim() || 0),
  };
}

/**
 * Machine ID from the host's root. A root without one gets an ID derived from the machine's ID and the path of the
 * root. Source: machine-id(5), sd_id128_get_machine_app_specific(3).
 */
async function machineIdOf(root: string): Promise<string> {
  const own = (await text(join(root, 'etc/machine-id'))).trim();
  if (own !== '' || root === '/') return own;
  const machine = (await text('/etc/machine-id')).trim();
  return createHmac('sha256', machine).update(root).digest('hex').slice(0, 32);
}

function readUsage(nowMs: number): HostUsage {
  const [stat, memory, mostIds, mostThreads, load] = [
    fromKernel('/proc/stat'),
    fromKernel('/proc/meminfo'),
    fromKernel('/proc/sys/kernel/pid_max'),
    fromKernel('/proc/sys/kernel/threads-max'),
    fromKernel('/proc/loadavg'),
  ];
  const cpu = /^cpu\s+(.*)$/m.exec(stat)?.[1]?.trim().split(/\s+/).map(Number) ?? [];
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = cpu;
  const total = meminfo(memory, 'MemTotal');
  const usage = total - meminfo(memory, 'MemFree');
  return {
    timestampMs: nowMs,
    bootTimeMs: Number(/^btime (\d+)/m.exec(stat)?.[1] ?? 0) * 1000,
    cpuUsageNanoSeconds: (user + nice + system + irq + softirq + steal) * NANOSECONDS_PER_TICK,
    memoryAvailableBytes: meminfo(memory, 'MemAvailable'),
    memoryUsageBytes: usage,
    memoryWorkingSetBytes: Math.max(0, usage - meminfo(memory, 'Inactive(file)')),
    memoryRssBytes: meminfo(memory, 'AnonPages'),
    processes: Number(/^\S+ \S+ \S+ \d+\/(\d+)/.exec(load)?.[1] ?? 0),
    maxProcesses: Math.min(Number(mostIds.trim() || 0), Number(mostThreads.trim() || 0)),
  };
}

async function readFileSystem(path: string): Promise<FileSystemUsage> {
  const found = await statfs(path);
  return {
    capacityBytes: found.blocks * found.bsize,
    availableBytes: found.bavail * found.bsize,
    inodes: found.files,
    inodesFree: found.ffree,
  };
}

/** Paths whose child process is still running after its deadline. */
const blocked = new Set<string>();

/** Runs stat(1) in a child process, because statfs(2) of a file system that hangs never returns. */
function readForeignFileSystem(path: string): Promise<FileSystemUsage> {
  if (blocked.has(path)) return Promise.reject(new Error(`${path}: its file system still does not answer`));
  return new Promise((resolve, reject) => {
    const child = execFile('stat', ['-f', '-c', '%S %b %a %c %d', '--', path], (error, stdout, stderr) => {
      clearTimeout(deadline);
      blocked.delete(path);
      if (error !== null) return reject(new Error(stderr.trim() === '' ? error.message : stderr.trim()));
      const [size = 0, blocks = 0, available = 0, inodes = 0, inodesFree = 0] = stdout.trim().split(' ').map(Number);
      resolve({ capacityBytes: blocks * size, availableBytes: available * size, inodes, inodesFree });
    });
    const deadline = setTimeout(() => {
      blocked.add(path);
      child.kill('SIGKILL');
      child.unref();
      reject(new Error(`${path}: its file system did not answer within ${FOREIGN_MS / 1000} s`));
    }, FOREIGN_MS);
  });
}

/** Parses `NAME=value` lines; values may be quoted. Source: os-release(5). */
export function parseOsRelease(content: string): Readonly<Record<string, string | undefined>> {
  const values: Record<string, string> = Object.create(null);
  for (const line of content.split('\n')) {
    const match = /^([A-Z][A-Z0-9_]*)=(?:"(.*)"|'(.*)'|(.*))$/.exec(line.trim());
    if (match?.[1] !== undefined) values[match[1]] = match[2] ?? match[3] ?? match[4] ?? '';
  }
  return values;
}

function meminfo(content: string, field: string): number {
  const line = content.split('\n').find((each) => each.startsWith(`${field}:`));
  return Number(/(\d+)/.exec(line?.slice(field.length) ?? '')?.[1] ?? 0) * 1024;
}

/**
 * Reads synchronously, because procfs is not on a disk: a synchronous read takes microseconds, an asynchronous read
 * several times as long.
 */
function fromKernel(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

async function text(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch {
    return '';
  }
}

/**
 * An appliance with the packaged executable in a network namespace and a root directory of its own. `stop` removes
 * everything that it created, also after a failure: processes by PID, mounts below the root, cgroups of its pods.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, readlink, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { kubectls } from '../support/kubectls.ts';

export const projectRoot = fileURLToPath(new URL('../..', import.meta.url));
export const executable = join(projectRoot, 'dist', `hyperedge-linux-${process.arch}`);

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly input?: string;
  readonly timeoutMs?: number;
  readonly env?: Readonly<Record<string, string>>;
}

const OUTPUT_LIMIT = 64 * 1024 * 1024;

/** Runs a program to its end. Never rejects for an exit code. */
export function run(file: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  return new Promise((resolve) => {
    const child = execFile(
      file,
      args,
      {
        timeout: options.timeoutMs ?? 60_000,
        maxBuffer: OUTPUT_LIMIT,
        killSignal: 'SIGKILL',
        env: { ...process.env, ...options.env },
      },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
        const reason = `${error?.message ?? ''} ${error?.signal ?? error?.code ?? ''}`;
        resolve({ code, stdout, stderr: code === -1 ? `${stderr}${reason}` : stderr });
      },
    );
    if (options.input !== undefined) child.stdin?.end(options.input);
    else child.stdin?.end();
  });
}

const MIN_POLL_MS = 100;
const MAX_POLL_MS = 400;

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Polls until `probe` returns a value other than undefined. The error contains the last failure. A probe that starts
 * processes runs less often, so that waiting takes little of the processors' time.
 */
export async function eventually<T>(
  what: string,
  timeoutMs: number,
  probe: () => Promise<T | undefined> | T | undefined,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  let last: unknown;
  for (;;) {
    const beganMs = performance.now();
    try {
      const value = await probe();
      if (value !== undefined) return value;
    } catch (error) {
      last = error;
    }
    const nowMs = performance.now();
    if (nowMs > deadline)
      throw new Error(`${what}: not within ${timeoutMs} ms${last === undefined ? '' : ` (${String(last)})`}`);
    await sleep(Math.min(MAX_POLL_MS, Math.max(MIN_POLL_MS, 3 * (nowMs - beganMs))));
  }
}

export interface ApplianceOptions {
  /** Existing directory to use (for example a small tmpfs) instead of a new one. */
  readonly root?: string;
  readonly runArguments?: readonly string[];
}

/** A process that keeps a network namespace open. */
async function newNamespace(): Promise<ChildProcess> {
  const holder = spawn('unshare', ['--net', 'sleep', 'infinity'], { stdio: 'ignore' });
  // Wait until the process has left the test's namespace, so that later commands run in the new one.
  const ours = await readlink('/proc/self/ns/net');
  await eventually('network namespace', 10_000, async () =>
    (await readlink(`/proc/${holder.pid}/ns/net`)) === ours ? undefined : true,
  );
  return holder;
}

/** One simulated host. */
export class Appliance {
  readonly root: string;
  readonly #ownRoot: boolean;
  #holder: ChildProcess;
  readonly #runArguments: readonly string[];
  #host: ChildProcess | undefined;
  #output = '';

  private constructor(root: string, ownRoot: boolean, holder: ChildProcess, runArguments: readonly string[]) {
    this.root = root;
    this.#ownRoot = ownRoot;
    this.#holder = holder;
    this.#runArguments = runArguments;
  }

  static async create(options: ApplianceOptions = {}): Promise<Appliance> {
    const root = options.root ?? (await mkdtemp(join(tmpdir(), 'he-e2e-')));
    const holder = await newNamespace();
    const appliance = new Appliance(root, options.root === undefined, holder, options.runArguments ?? []);
    const up = await appliance.inside('ip', ['link', 'set', 'lo', 'up']);
    if (up.code !== 0) throw new Error(`loopback: ${up.stderr}`);
    return appliance;
  }

  get kubeconfig(): string {
    return join(this.root, 'etc/origin/master/admin.kubeconfig');
  }

  get output(): string {
    return this.#output;
  }

  /** Exit code of the host process; undefined while it runs. */
  get exitCode(): number | undefined {
    return this.#host?.exitCode ?? undefined;
  }

  get hostPid(): number {
    return this.#host?.pid ?? -1;
  }

  /** PID of the process that keeps the network namespace open. */
  get holderPid(): number {
    return this.#holder.pid ?? -1;
  }

  /** Runs a command in the appliance's network namespace. */
  inside(file: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
    return run('nsenter', ['-t', String(this.#holder.pid), '-n', file, ...args], options);
  }

  spawnInside(file: string, args: readonly string[]): ChildProcess {
    return spawn('nsenter', ['-t', String(this.#holder.pid), '-n', file, ...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, KUBECONFIG: this.kubeconfig },
    });
  }

  /** Starts `hyperedge run` without waiting. */
  launch(): void {
    const child = spawn(
      'nsenter',
      ['-t', String(this.#holder.pid), '-n', executable, 'run', '--root', this.root, ...this.#runArguments],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    );
    this.#host = child;
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text;
      });
  }

  /** Starts the appliance and waits until the node is Ready. Returns the milliseconds that this took. */
  async start(timeoutMs = 60_000): Promise<number> {
    const begin = performance.now();
    this.launch();
    try {
      await eventually('node Ready', timeoutMs, async () => {
        if (this.#host !== undefined && this.#host.exitCode !== null)
          throw new Error(`hyperedge run ended with ${this.#host.exitCode}`);
        if (!existsSync(this.kubeconfig)) return undefined;
        const nodes = await this.kubectl(['get', 'nodes', '--no-headers']);
        return / Ready /.test(nodes.stdout) ? true : undefined;
      });
    } catch (error) {
      throw new Error(`${String(error)}\n${this.#output.slice(-6_000)}`);
    }
    const tookMs = performance.now() - begin;
    // The controllers create the default service account shortly after the namespace; before that, no pod is admitted.
    await eventually('default service account', 60_000, async () =>
      (await this.kubectl(['get', 'serviceaccount', 'default'])).code === 0 ? true : undefined,
    );
    return tookMs;
  }

  kubectl(args: readonly string[], options: RunOptions & { readonly path?: string } = {}): Promise<Ran> {
    return this.inside(options.path ?? kubectls()[0]?.path ?? 'kubectl', args, {
      ...options,
      env: { KUBECONFIG: this.kubeconfig, HOME: this.root, ...options.env },
    });
  }

  /** Runs kubectl, fails unless it succeeds, and returns its output. */
  async must(args: readonly string[], options: RunOptions & { readonly path?: string } = {}): Promise<string> {
    const ran = await this.kubectl(args, options);
    if (ran.code !== 0) throw new Error(`kubectl ${args.join(' ')}: exit ${ran.code}\n${ran.stdout}${ran.stderr}`);
    return ran.stdout;
  }

  hyperedge(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
    return this.inside(executable, args, options);
  }

  /** Stops the host process and waits for its end. */
  async halt(signal: 'SIGTERM' | 'SIGKILL' | 'SIGINT', timeoutMs = 60_000): Promise<void> {
    const host = this.#host;
    if (host === undefined || host.exitCode !== null || host.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => host.once('exit', () => resolve()));
    // nsenter replaces itself by the program, so the child is the host process.
    host.kill(signal);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new Error(`hyperedge run (pid ${host.pid}) did not end within ${timeoutMs} ms after ${signal}`)),
        timeoutMs,
      );
    });
    await Promise.race([ended, late]).finally(() => clearTimeout(timer));
  }

  /** Processes whose command line or root directory is below this appliance's root. */
  async processes(): Promise<{ readonly pid: number; readonly command: string }[]> {
    const found: { pid: number; command: string }[] = [];
    for (const name of await readdir('/proc')) {
      if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
      const command = (await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '')).replaceAll('\0', ' ');
      if (command.includes(this.root)) found.push({ pid: Number(name), command });
    }
    return found;
  }

  /** Simulates a power cut and reboot: removes all processes, mounts, links, rules and files in /run. */
  async powerCut(): Promise<void> {
    await this.halt('SIGKILL');
    await this.#killAll(await this.#podUids());
    this.#holder.kill('SIGKILL');
    await unmountBelow(this.root);
    await rm(join(this.root, 'run'), { recursive: true, force: true });
    this.#holder = await newNamespace();
    await this.inside('ip', ['link', 'set', 'lo', 'up']);
  }

  #podUids(): Promise<string[]> {
    return readdir(join(this.root, 'var/log/pods')).then(
      (names) => names.map((name) => name.split('_').at(-1) ?? ''),
      () => [],
    );
  }

  async #killAll(podUids: readonly string[]): Promise<void> {
    for (let round = 0; round < 3; round++) {
      for (const { pid } of await this.processes()) tryKill(pid);
      for (const pid of await pidsInPodCgroups(podUids)) tryKill(pid);
      await sleep(50);
    }
  }

  /** Removes everything. May be called at any time and repeatedly. */
  async stop(): Promise<void> {
    await this.halt('SIGTERM').catch(() => this.halt('SIGKILL', 5_000).catch(() => {}));
    const podUids = await this.#podUids();
    await this.#killAll(podUids);
    this.#holder.kill('SIGKILL');
    await unmountBelow(this.root);
    await removePodCgroups(podUids);
    if (this.#ownRoot) await rm(this.root, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

function tryKill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The process has already ended.
  }
}

/** Unmounts all mount points below `root`, deepest first. */
async function unmountBelow(root: string): Promise<void> {
  for (let round = 0; round < 3; round++) {
    const mounts = (await readFile('/proc/self/mountinfo', 'utf8'))
      .split('\n')
      .map((line) => (line.split(' ')[4] ?? '').replaceAll('\\040', ' '))
      .filter((point) => point.startsWith(`${root}/`))
      .sort((left, right) => right.length - left.length);
    if (mounts.length === 0) return;
    for (const point of mounts) await run('umount', ['-l', point]);
  }
}

const CGROUP_ROOT = '/sys/fs/cgroup';

async function podCgroups(podUids: readonly string[]): Promise<string[]> {
  if (podUids.length === 0) return [];
  const found: string[] = [];
  const visit = async (directory: string, depth: number): Promise<void> => {
    for (const entry of await readdir(directory, { withFileTypes: true }).catch(() => [])) {
      if (!entry.isDirectory()) continue;
      const path = join(directory, entry.name);
      const plain = entry.name.replaceAll('_', '-');
      if (podUids.some((uid) => uid !== '' && plain.includes(uid))) found.push(path);
      else if (depth < 4 && (depth > 0 || !entry.name.includes('.'))) {
        if (depth > 1 || entry.name.startsWith('kubepods') || depth === 0) await visit(path, depth + 1);
      }
    }
  };
  await visit(CGROUP_ROOT, 0);
  return found;
}

async function pidsInPodCgroups(podUids: readonly string[]): Promise<number[]> {
  const pids: number[] = [];
  const collect = async (directory: string): Promise<void> => {
    const text = await readFile(join(directory, 'cgroup.procs'), 'utf8').catch(() => '');
    for (const line of text.split('\n')) if (line !== '') pids.push(Number(line));
    for (const entry of await readdir(directory, { withFileTypes: true }).catch(() => []))
      if (entry.isDirectory()) await collect(join(directory, entry.name));
  };
  for (const directory of await podCgroups(podUids)) await collect(directory);
  return pids.filter((pid) => pid !== process.pid && pid > 1);
}

async function removePodCgroups(podUids: readonly string[]): Promise<void> {
  const removeTree = async (directory: string): Promise<void> => {
    for (const entry of await readdir(directory, { withFileTypes: true }).catch(() => []))
      if (entry.isDirectory()) await removeTree(join(directory, entry.name));
    await rmdir(directory).catch(() => {});
  };
  for (const directory of await podCgroups(podUids)) await removeTree(directory);
  // Shared levels are removed unless they contain pods of others; rmdir fails for those.
  for (const hierarchy of await readdir(CGROUP_ROOT))
    for (const level of ['kubepods/burstable', 'kubepods/besteffort', 'kubepods'])
      await rmdir(join(CGROUP_ROOT, hierarchy, level)).catch(() => {});
}

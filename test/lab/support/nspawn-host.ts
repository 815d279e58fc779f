/**
 * A host that runs a real systemd as PID 1 in systemd-nspawn. It has its own root file system (an overlay), its own
 * state on the machine's disk, its own network, and its own cgroups in every hierarchy of the machine. `stop` removes
 * everything, also after a failure.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { eventually, executable, type Ran, type RunOptions, run, sleep } from '../../e2e/harness.ts';
import { kubectls } from '../../support/kubectls.ts';
import { stopWhenInterrupted } from './interrupted.ts';
import { LabDisk } from './lab-disk.ts';
import { Lan, portOf } from './lan.ts';
import { blankOn, installOn, labRootfs, succeed } from './rootfs.ts';

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const END_TIMEOUT_MS = 100_000;
const LINK = 'eth0';

/** Makes the cgroup controllers writable and starts systemd. */
const INIT = `#!/bin/sh
for d in /sys/fs/cgroup/*/; do [ -f "$d/tasks" ] && mount -o remount,rw,bind "\${d%/}"; done
mount --make-rshared /
exec /usr/lib/systemd/systemd
`;

/** Reason why this machine cannot run lab hosts; undefined if it can. */
export async function whyNoNspawn(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'lab hosts need root';
  if (!existsSync(executable)) return `${executable} has not been built: npm run build`;
  for (const program of ['systemd-nspawn', 'mmdebstrap', 'nsenter', 'ip'])
    if ((await run('which', [program])).code !== 0)
      return `${program} is not installed: apt-get install -y --no-install-recommends systemd-container mmdebstrap iproute2`;
  if (!existsSync(kubectls()[0]?.path ?? '')) return 'kubectl is not installed';
  if ((await hierarchies()).every(({ v2 }) => v2))
    return 'this machine has cgroup v2 only, where nspawn needs a unit of its own; the virtual machine of the lab shows v2';
  return undefined;
}

interface Hierarchy {
  readonly mount: string;
  readonly v2: boolean;
}

async function hierarchies(): Promise<Hierarchy[]> {
  return (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').flatMap((line) => {
    const mount = line.split(' ')[4] ?? '';
    const type = line.split(' - ')[1]?.split(' ')[0];
    return type === 'cgroup' || type === 'cgroup2' ? [{ mount, v2: type === 'cgroup2' }] : [];
  });
}

export class NspawnHost {
  readonly name: string;
  /** Address of the host's link. It stays the same after a reboot. */
  address: string;
  readonly #lan: Lan;
  readonly #directory: string;
  #supervisor: ChildProcess | undefined;
  #ownsLan = false;
  #lower = '';
  #disk: LabDisk | undefined;
  #console = '';
  #pid1 = 0;

  private constructor(directory: string, lan: Lan) {
    this.#directory = directory;
    this.#lan = lan;
    this.address = lan.nextAddress();
    this.name = basename(directory).toLowerCase();
  }

  /**
   * Creates an installed host on `lan`, or on a switch of its own, without booting the host. `blank`: the host only has
   * a copy of the executable in /root, and none of the programs that hyperedge needs. `ssh`: like `blank`, with
   * OpenSSH. `disk`: all writes of the host go to a disk of its own, which loses unsynced data in a power cut.
   */
  static async create(
    say: (line: string) => void,
    lan?: Lan,
    options: { readonly blank?: boolean; readonly ssh?: boolean; readonly disk?: boolean } = {},
  ): Promise<NspawnHost> {
    const ssh = options.ssh === true;
    const blank = options.blank === true || ssh;
    const lower = await labRootfs(ssh ? 'ssh' : blank ? 'blank' : 'container', say);
    const host = new NspawnHost(await mkdtemp(join(tmpdir(), 'he-lab-')), lan ?? (await Lan.create()));
    host.#ownsLan = lan === undefined;
    host.#lower = lower;
    if (options.disk === true) host.#disk = new LabDisk(host.#directory);
    stopWhenInterrupted(host);
    try {
      await host.#install(blank);
    } catch (error) {
      await host.stop();
      throw error;
    }
    return host;
  }

  get root(): string {
    return join(this.#directory, 'root');
  }

  /** Directory on the machine with the host's /var/lib/origin. */
  get directoryOfState(): string {
    return join(this.#writable, 'state');
  }

  get #writable(): string {
    return this.#disk?.mount ?? this.#directory;
  }

  /** PID on the machine of the host's systemd. */
  get pid1(): number {
    return this.#pid1;
  }

  get console(): string {
    return this.#console;
  }

  async #install(blank: boolean): Promise<void> {
    await mkdir(this.root);
    await this.#disk?.make();
    await Promise.all(['upper', 'work', 'state'].map((name) => mkdir(join(this.#writable, name))));
    await this.#mountRoot();
    await (blank ? blankOn : installOn)(this.root, this.name);
    await writeFile(join(this.root, 'usr/local/sbin/lab-init'), INIT, { mode: 0o755 });
    if (this.#disk !== undefined) await succeed('sync', ['-f', this.#disk.mount]);
  }

  async #mountRoot(): Promise<void> {
    const at = (name: string): string => join(this.#writable, name);
    const options = `lowerdir=${this.#lower},upperdir=${at('upper')},workdir=${at('work')}`;
    await succeed('mount', ['-t', 'overlay', '-o', options, 'overlay', this.root]);
  }

  /** Boots the host and waits until systemd is up. */
  async boot(): Promise<void> {
    await this.#makeNetwork();
    const directories = await this.#makeCgroups();
    const nspawn = [
      ...['systemd-nspawn', '--register=no', '--keep-unit', '-q', '-M', this.name, '-D', this.root],
      ...['--kill-signal=SIGRTMIN+3', `--network-namespace-path=/run/netns/${this.name}`],
      '--capability=CAP_NET_ADMIN,CAP_SYSLOG,CAP_IPC_LOCK,CAP_BPF,CAP_PERFMON',
      ...['--system-call-filter=@keyring', '--system-call-filter=bpf'],
      `--bind=${this.directoryOfState}:/var/lib/origin`,
      ...['--bind=/dev/kmsg', '/usr/local/sbin/lab-init'],
    ];
    const enter =
      'for d in "$@"; do [ "$d" = -- ] && break; echo $$ > "$d/cgroup.procs" || exit 1; shift; done; shift; exec "$@"';
    const child = spawn('sh', ['-c', enter, 'sh', ...directories, '--', ...nspawn], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH, SYSTEMD_NSPAWN_API_VFS_WRITABLE: 'network' },
    });
    this.#supervisor = child;
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#console = (this.#console + text).slice(-100_000);
      });
    try {
      await eventually('systemd as PID 1', 20_000, async () => {
        if (child.exitCode !== null) throw new Error(`systemd-nspawn ended with ${child.exitCode}`);
        const found = await run('pgrep', ['-P', String(child.pid), '-x', 'systemd']);
        this.#pid1 = Number(found.stdout.trim());
        return this.#pid1 > 0 ? true : undefined;
      });
      await eventually('a booted host', 30_000, async () =>
        /running|degraded/.test((await this.inside('systemctl', ['is-system-running'])).stdout) ? true : undefined,
      );
    } catch (error) {
      throw new Error(`${String(error)}\n${this.#console.slice(-4_000)}`);
    }
  }

  /** Runs a program that is installed on the host, in the host's namespaces. */
  inside(file: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
    const env = Object.entries(options.env ?? {}).map(([name, value]) => `${name}=${value}`);
    const namespaces = ['-m', '-u', '-i', '-n', '-p', '-C', '--wdns=/'];
    return run(
      'nsenter',
      ['-t', String(this.#pid1), ...namespaces, 'env', '-i', `PATH=${PATH}`, 'LANG=C.UTF-8', ...env, file, ...args],
      { ...options, env: {} },
    );
  }

  /** Like `inside`, but fails unless the program succeeds. Returns its output. */
  async must(file: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
    const ran = await this.inside(file, args, options);
    if (ran.code !== 0) throw new Error(`${file} ${args.join(' ')}: exit ${ran.code}\n${ran.stdout}${ran.stderr}`);
    return ran.stdout;
  }

  /** Runs the machine's kubectl in the network namespace of the host. */
  kubectl(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
    return run('nsenter', ['-t', String(this.#pid1), '-n', kubectls()[0]?.path ?? 'kubectl', ...args], {
      ...options,
      env: { KUBECONFIG: join(this.root, 'etc/origin/master/admin.kubeconfig'), HOME: this.#directory, ...options.env },
    });
  }

  async mustKubectl(args: readonly string[], options: RunOptions = {}): Promise<string> {
    const ran = await this.kubectl(args, options);
    if (ran.code !== 0) throw new Error(`kubectl ${args.join(' ')}: exit ${ran.code}\n${ran.stdout}${ran.stderr}`);
    return ran.stdout;
  }

  /** Runs the machine's nft in the network namespace of the host. */
  async nft(args: readonly string[]): Promise<string> {
    const ran = await run('nsenter', ['-t', String(this.#pid1), '-n', 'nft', ...args]);
    if (ran.code !== 0) throw new Error(`nft ${args.join(' ')}: exit ${ran.code}\n${ran.stderr}`);
    return ran.stdout;
  }

  journal(): Promise<string> {
    return this.inside('journalctl', ['-u', 'hyperedge', '--no-pager', '-o', 'short-monotonic']).then(
      ({ stdout }) => stdout,
    );
  }

  /**
   * Directory of a process's cgroup in a controller's hierarchy, as the machine sees it. `pid` is a PID of the machine.
   */
  async cgroupOf(pid: number, controller: string): Promise<string> {
    const lines = (await readFile(`/proc/${pid}/cgroup`, 'utf8')).split('\n').map((line) => line.split(':'));
    const path = lines.find(([, names = '']) => names.split(',').includes(controller))?.[2];
    if (path === undefined) throw new Error(`process ${pid} is in no hierarchy of ${controller}`);
    return path;
  }

  /** PIDs on the machine of the processes in a container. */
  async containerPids(containerId: string): Promise<number[]> {
    const pids: number[] = [];
    for (const entry of await readdir('/proc')) {
      if (!/^\d+$/.test(entry)) continue;
      const cgroup = await readFile(`/proc/${entry}/cgroup`, 'utf8').catch(() => '');
      if (cgroup.includes(`hyperedge-${containerId}.scope`)) pids.push(Number(entry));
    }
    return pids.sort((left, right) => left - right);
  }

  /** Freezes or thaws all processes of the host. */
  async pause(paused: boolean): Promise<void> {
    const freezer = (await hierarchies()).map(({ mount }) => join(mount, this.name, 'freezer.state')).find(existsSync);
    if (freezer === undefined) throw new Error('this machine has no freezer hierarchy of cgroup v1');
    const state = paused ? 'FROZEN' : 'THAWED';
    await eventually(`state ${state}`, 10_000, async () => {
      await writeFile(freezer, state);
      return (await readFile(freezer, 'utf8')).trim() === state ? true : undefined;
    });
  }

  /** Changes the address of the host's link, also for later boots. */
  async changeAddress(address: string): Promise<void> {
    const link = ['-n', this.name, 'address'];
    await succeed('ip', [...link, 'add', `${address}/24`, 'dev', LINK]);
    await succeed('ip', [...link, 'delete', `${this.address}/24`, 'dev', LINK]);
    // The kernel may remove secondary addresses of a subnet together with the first one.
    await run('ip', [...link, 'add', `${address}/24`, 'dev', LINK]);
    this.address = address;
  }

  /** Kills the host without a shutdown, so that the next boot finds only what is on the disk. */
  async cutPower(): Promise<void> {
    await this.#end(async () => {
      process.kill(this.#pid1, 'SIGKILL');
      await this.#disk?.shutDown();
      // A container that was being created may be frozen. Its processes end only after the cgroup is thawed.
      for (const { mount } of await hierarchies()) await thaw(join(mount, this.name));
    });
  }

  /** After a power cut of a host with a disk, mounts its files as the next boot would find them. */
  async readDisk(): Promise<void> {
    if (this.#disk === undefined) return;
    await succeed('umount', [this.root]);
    await this.#disk.replay();
    await this.#mountRoot();
  }

  /** Runs `systemctl poweroff`. Returns how many milliseconds the shutdown took. */
  async powerOff(): Promise<number> {
    const begin = performance.now();
    await this.#end(() => this.inside('systemctl', ['poweroff']));
    return performance.now() - begin;
  }

  async #end(act: () => unknown): Promise<void> {
    const supervisor = this.#supervisor;
    if (supervisor === undefined || supervisor.exitCode !== null || supervisor.signalCode !== null) return;
    await act();
    try {
      await eventually('end of the host', END_TIMEOUT_MS, () =>
        supervisor.exitCode !== null || supervisor.signalCode !== null ? true : undefined,
      );
    } catch (error) {
      process.kill(this.#pid1, 'SIGKILL');
      throw new Error(`${String(error)}\n${this.#console.slice(-4_000)}`);
    }
    this.#supervisor = undefined;
    await this.#removeCgroups();
    await this.#removeNetwork();
  }

  async #makeNetwork(): Promise<void> {
    await succeed('ip', ['netns', 'add', this.name]);
    const inHost = ['-n', this.name];
    const port = portOf(this.name);
    const cable = ['type', 'veth', 'peer', 'name', port, 'netns', this.#lan.netns];
    await succeed('ip', [...inHost, 'link', 'add', LINK, ...cable]);
    await succeed('ip', [...inHost, 'address', 'add', `${this.address}/24`, 'dev', LINK]);
    for (const link of ['lo', LINK]) await succeed('ip', [...inHost, 'link', 'set', link, 'up']);
    await succeed('ip', ['-n', this.#lan.netns, 'link', 'set', port, 'master', 'switch', 'up']);
  }

  async #removeNetwork(): Promise<void> {
    await run('ip', ['netns', 'delete', this.name]);
    // The kernel removes the cable with the namespace, but not immediately.
    await run('ip', ['-n', this.#lan.netns, 'link', 'delete', portOf(this.name)]);
  }

  async #makeCgroups(): Promise<string[]> {
    const made: string[] = [];
    for (const { mount } of await hierarchies()) {
      const directory = join(mount, this.name);
      await mkdir(directory, { recursive: true });
      for (const file of ['cpuset.cpus', 'cpuset.mems'])
        if (existsSync(join(mount, file)) && existsSync(join(directory, file)))
          await writeFile(join(directory, file), await readFile(join(mount, file), 'utf8'));
      made.push(directory);
    }
    return made;
  }

  /** Kills the remaining processes of the host and removes its cgroups. */
  async #removeCgroups(): Promise<void> {
    for (const { mount } of await hierarchies()) await removeCgroup(join(mount, this.name));
  }

  /** Removes everything. It may be called at any time and repeatedly. */
  async stop(): Promise<void> {
    await this.cutPower().catch(() => {});
    await this.#removeCgroups();
    await this.#removeNetwork();
    if (this.#ownsLan) await this.#lan.stop();
    for (let round = 0; round < 3; round++) await run('umount', ['-l', this.root]);
    await this.#disk?.remove();
    await rm(this.#directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

async function thaw(directory: string): Promise<void> {
  const state = join(directory, 'freezer.state');
  if (!existsSync(state)) return;
  await writeFile(state, 'THAWED').catch(() => {});
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) if (entry.isDirectory()) await thaw(join(directory, entry.name));
}

async function removeCgroup(directory: string): Promise<void> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) if (entry.isDirectory()) await removeCgroup(join(directory, entry.name));
  for (let attempt = 0; attempt < 50 && existsSync(directory); attempt++) {
    const procs = await readFile(join(directory, 'cgroup.procs'), 'utf8').catch(() => '');
    for (const pid of procs.split('\n').filter((line) => line !== '')) {
      try {
        process.kill(Number(pid), 'SIGKILL');
      } catch {
        // The process has already ended.
      }
    }
    if (
      await rmdir(directory).then(
        () => true,
        () => false,
      )
    )
      return;
    await sleep(20);
  }
}

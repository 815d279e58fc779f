/**
 * A host that runs the arm64 executable of hyperedge with qemu-user, in mount and network namespaces of its own. A
 * binfmt_misc entry makes the kernel start arm64 programs with qemu. Until `stop`, the entry applies to the whole
 * machine.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually, projectRoot, type Ran, run } from '../../e2e/harness.ts';

export const ARM64 = join(projectRoot, 'dist/hyperedge-linux-arm64');
const SYSROOT = join(projectRoot, 'dist/cache/sysroot-arm64');
const EMULATOR = '/usr/bin/qemu-aarch64-static';
const EDITOR = join(import.meta.dirname, 'emulated-runc.child.ts');
const RUNC = '/usr/sbin/runc';
const ADDRESS = '10.88.0.1';
const BINFMT = '/proc/sys/fs/binfmt_misc';
const MAGIC =
  '\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\xb7\\x00:\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe\\xff\\xff\\xff';

/** Reason why the emulated host cannot run; undefined if it can. */
export function whyNoArm64(): string | undefined {
  if (process.arch === 'arm64') return 'this machine is arm64; the end-to-end tests run its executable';
  if (process.geteuid?.() !== 0) return 'needs root';
  if (!existsSync(EMULATOR)) return `${EMULATOR} is missing; run apt-get install qemu-user-static`;
  if (!existsSync(ARM64)) return 'dist/hyperedge-linux-arm64 is missing; run node build/package.ts --all';
  if (!existsSync(SYSROOT)) return `${SYSROOT} is missing; node build/package.ts --all creates it with the emulator`;
  if (!existsSync(RUNC)) return 'runc is missing; run apt-get install runc';
  return undefined;
}

export class EmulatedHost {
  readonly directory: string;
  readonly #holder: ChildProcess;
  readonly #entry = `hyperedge-test-${process.pid}`;

  private constructor(directory: string, holder: ChildProcess) {
    this.directory = directory;
    this.#holder = holder;
  }

  static async create(): Promise<EmulatedHost> {
    const directory = await mkdtemp(join(tmpdir(), 'he-arm64-'));
    const namespaces = ['--mount', '--net', '--propagation', 'private'];
    const holder = spawn('unshare', [...namespaces, 'sleep', 'infinity'], { stdio: 'ignore' });
    const host = new EmulatedHost(directory, holder);
    try {
      const ours = await readlink('/proc/self/ns/net');
      await eventually('namespaces', 10_000, async () =>
        (await readlink(`/proc/${holder.pid}/ns/net`)) === ours ? undefined : true,
      );
      await host.#prepare();
    } catch (error) {
      await host.stop();
      throw error;
    }
    return host;
  }

  get root(): string {
    return join(this.directory, 'root');
  }

  async #prepare(): Promise<void> {
    await mkdir(join(this.root, 'etc/origin'), { recursive: true });
    const bootstrap = `apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nhostTools: true\nnode: {name: arm-1, ip: ${ADDRESS}}\n`;
    await writeFile(join(this.root, 'etc/origin/bootstrap.yaml'), bootstrap, { mode: 0o600 });
    const [real, wrapper] = [join(this.directory, 'runc.real'), join(this.directory, 'runc')];
    // The wrapper uses exec, so that runc inherits the pipes of conmon.
    const script = `#!/bin/sh\n'${process.execPath}' '${EDITOR}' '${SYSROOT}' "$@" && exec '${real}' "$@"\n`;
    await writeFile(wrapper, script, { mode: 0o755 });
    await this.#must(
      `mount -t binfmt_misc none ${BINFMT}
      printf ':${this.#entry}:M::${MAGIC.replaceAll('\\', '\\\\')}:${EMULATOR}:F' > ${BINFMT}/register
      mount -t overlay overlay -o lowerdir=${SYSROOT}/lib:${SYSROOT}/usr/lib:/usr/lib /usr/lib
      cp ${RUNC} '${real}' && mount --bind '${wrapper}' ${RUNC}
      ip link set lo up && ip link add eth0 type veth peer name eth1 && ip link set eth1 up
      ip addr add ${ADDRESS}/24 dev eth0 && ip link set eth0 up && ip route add default via 10.88.0.254`,
    );
  }

  async #must(script: string): Promise<void> {
    const { code, stderr } = await this.shell(script);
    if (code !== 0) throw new Error(`${script}: ${stderr}`);
  }

  shell(script: string): Promise<Ran> {
    return run('nsenter', [...this.#enter, 'sh', '-ec', script]);
  }

  /** Runs a command of the arm64 executable and waits until it ends. */
  hyperedge(args: readonly string[], timeoutMs = 120_000): Promise<Ran> {
    return run('nsenter', [...this.#enter, ARM64, ...args], { timeoutMs });
  }

  /** Starts a command of the arm64 executable. */
  start(args: readonly string[]): ChildProcess {
    return spawn('nsenter', [...this.#enter, ARM64, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  }

  get #enter(): string[] {
    return ['-t', String(this.#holder.pid), '-m', '-n'];
  }

  async stop(): Promise<void> {
    await this.shell(`! [ -e ${BINFMT}/${this.#entry} ] || echo -1 > ${BINFMT}/${this.#entry}`);
    this.#holder.kill('SIGKILL');
    await rm(this.directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}

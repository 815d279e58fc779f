/**
 * A machine in qemu without acceleration. It has pure cgroup v2, a clock of its own, and a disk that loses unsynced
 * data in a power cut. Programs run ten times slower in the machine. `stop` removes everything, also after a failure.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { eventually, executable, type Ran, run } from '../../e2e/harness.ts';
import { freePort } from '../../support/ports.ts';
import { LAB_KERNEL_ARGUMENTS, type LabBootLoader, makeBootDisk } from './boot-disk.ts';
import { stopWhenInterrupted } from './interrupted.ts';
import { installOn, labRootfs, succeed } from './rootfs.ts';

const BOOT_TIMEOUT_MS = 120_000;
const SHELL_PORT = 2222;

/** Address at which the virtual machine reaches an API server that the test runs. */
export const API_OF_TEST = { address: '10.0.2.100', port: 8443 } as const;

const NETWORK = `[Match]
Name=eth0
[Network]
Address=10.0.2.15/24
Gateway=10.0.2.2
`;
/** Unit with a shell for the test. Only the loopback of the machine that runs the test can reach the shell. */
const SHELL = `[Unit]
Description=shell of the lab
[Service]
ExecStart=/usr/bin/socat TCP-LISTEN:${SHELL_PORT},fork,reuseaddr EXEC:"/bin/bash -s",stderr
Environment=HOME=/root
KillMode=process
[Install]
WantedBy=multi-user.target
`;
/**
 * Unit that sets the clock back before hyperedge starts. It is needed because systemd, at boot, advances a clock that
 * is behind its own release date.
 */
const CLOCK = `[Unit]
Description=wrong clock of the lab
ConditionKernelCommandLine=lab.clock
Before=hyperedge.service
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'date -s @$(tr " " "\\n" < /proc/cmdline | busybox sed -n "s/^lab.clock=//p")'
`;

/** Reason why this machine cannot run virtual hosts; undefined if it can. */
export async function whyNoVm(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'lab hosts need root';
  if (process.arch !== 'x64') return 'the virtual machine of the lab is an x64 one';
  if (!existsSync(executable)) return `${executable} has not been built: npm run build`;
  for (const program of ['qemu-system-x86_64', 'mmdebstrap', 'mkfs.ext4', 'socat'])
    if ((await run('which', [program])).code !== 0)
      return `${program} is not installed: apt-get install -y --no-install-recommends qemu-system-x86 mmdebstrap e2fsprogs socat`;
  return undefined;
}

export class VmHost {
  readonly name: string;
  readonly #directory: string;
  #boot = '';
  #loader: LabBootLoader | undefined;
  #machine: ChildProcess | undefined;
  #console = '';
  #port = 0;

  private constructor(directory: string) {
    this.#directory = directory;
    this.name = basename(directory).toLowerCase();
  }

  /**
   * Creates an installed machine without starting it. `files`: local paths of files to copy, by their path in the
   * machine. `loader`: the machine boots from its disk with this boot loader, instead of a kernel that qemu loads.
   */
  static async create(
    files: Readonly<Record<string, string>>,
    say: (line: string) => void,
    loader?: LabBootLoader,
  ): Promise<VmHost> {
    const lower = await labRootfs(loader === undefined ? 'machine' : 'bootable', say);
    const host = new VmHost(await mkdtemp(join(tmpdir(), 'he-vm-')));
    host.#loader = loader;
    stopWhenInterrupted(host);
    try {
      await host.#install(lower, files);
    } catch (error) {
      await host.stop();
      throw error;
    }
    return host;
  }

  get console(): string {
    return this.#console;
  }

  async #install(lower: string, files: Readonly<Record<string, string>>): Promise<void> {
    const at = (name: string): string => join(this.#directory, name);
    const root = at('root');
    await Promise.all(['root', 'upper', 'work'].map((name) => mkdir(at(name))));
    const options = `lowerdir=${lower},upperdir=${at('upper')},workdir=${at('work')}`;
    await succeed('mount', ['-t', 'overlay', '-o', options, 'overlay', root]);
    try {
      await installOn(root, this.name);
      for (const [inside, here] of Object.entries(files)) await copyFile(here, join(root, inside));
      await writeFile(join(root, 'etc/fstab'), `${this.#rootDevice} / ext4 rw 0 1\n`);
      await writeFile(join(root, 'etc/systemd/network/10-lab.network'), NETWORK);
      await writeFile(join(root, 'etc/systemd/system/lab-shell.service'), SHELL);
      await writeFile(join(root, 'etc/systemd/system/lab-clock.service'), CLOCK);
      const units = join(root, 'etc/systemd/system');
      for (const [target, unit] of [
        ['multi-user.target', '/lib/systemd/system/systemd-networkd.service'],
        ['network-online.target', '/lib/systemd/system/systemd-networkd-wait-online.service'],
        ['multi-user.target', '/etc/systemd/system/lab-shell.service'],
        ['multi-user.target', '/etc/systemd/system/lab-clock.service'],
      ] as const) {
        await mkdir(join(units, `${target}.wants`), { recursive: true });
        await symlink(unit, join(units, `${target}.wants`, basename(unit))).catch(() => {});
      }
      if (this.#loader === undefined) await succeed('mkfs.ext4', ['-q', '-d', root, at('disk'), '3G']);
      else await makeBootDisk(this.#loader, root, lower, at('disk'));
    } finally {
      await succeed('umount', [root]);
    }
    this.#boot = join(lower, 'boot');
  }

  get #rootDevice(): string {
    return this.#loader === undefined ? '/dev/vda' : '/dev/vda1';
  }

  /**
   * Boots the machine and waits until systemd is up. `clock`: initial time of the machine's clock in seconds since
   * 1970. `api`: a port of the test's loopback, which the machine reaches at `API_OF_TEST`.
   */
  async boot(options: { readonly clock?: number; readonly api?: number } = {}): Promise<void> {
    this.#port = await freePort();
    const clock = options.clock === undefined ? '' : ` lab.clock=${options.clock}`;
    const { address, port } = API_OF_TEST;
    const forward = `socat - TCP:127.0.0.1:${options.api}`;
    const api = options.api === undefined ? '' : `,guestfwd=tcp:${address}:${port}-cmd:${forward}`;
    const args = [
      ...['-accel', 'tcg,thread=multi,tb-size=512', '-cpu', 'max', '-m', '2048', '-smp', '2'],
      ...(this.#loader === undefined ? await this.#givenKernel(clock) : []),
      ...['-drive', `file=${join(this.#directory, 'disk')},format=raw,if=virtio`],
      ...['-nic', `user,model=virtio,restrict=on,hostfwd=tcp:127.0.0.1:${this.#port}-:${SHELL_PORT}${api}`],
      ...['-display', 'none', '-serial', 'stdio', '-monitor', 'none'],
    ];
    const machine = spawn('qemu-system-x86_64', args, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#machine = machine;
    for (const stream of [machine.stdout, machine.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#console = (this.#console + text).slice(-100_000);
      });
    try {
      await eventually('a booted machine', BOOT_TIMEOUT_MS, async () => {
        if (machine.exitCode !== null) throw new Error(`qemu ended with ${machine.exitCode}`);
        return (await this.shell('true', 10_000)).code === 0 ? true : undefined;
      });
    } catch (error) {
      throw new Error(`${String(error)}\n${this.#console.slice(-4_000)}`);
    }
  }

  async #givenKernel(clock: string): Promise<string[]> {
    const images = await readdir(this.#boot);
    const file = (prefix: string): string => join(this.#boot, images.find((name) => name.startsWith(prefix)) ?? prefix);
    return [
      ...['-no-reboot', '-kernel', file('vmlinuz-'), '-initrd', file('initrd.img-')],
      ...['-append', `root=${this.#rootDevice} ${LAB_KERNEL_ARGUMENTS}${clock}`],
    ];
  }

  /** Runs a shell script as root. Code -1 means that the machine did not respond; the function never rejects. */
  shell(script: string, timeoutMs = 120_000): Promise<Ran> {
    return new Promise((resolve) => {
      let output = '';
      const socket = connect(this.#port, '127.0.0.1');
      const done = (): void => {
        clearTimeout(timer);
        socket.destroy();
        const end = /\nexit (\d+)\n$/.exec(output);
        resolve({
          code: end === null ? -1 : Number(end[1]),
          stdout: end === null ? output : output.slice(0, end.index),
          stderr: '',
        });
      };
      const timer = setTimeout(done, timeoutMs);
      socket.setEncoding('utf8');
      socket.on('data', (text: string) => {
        output += text;
        if (/\nexit \d+\n$/.test(output)) done();
      });
      socket.on('error', done);
      socket.on('close', done);
      socket.write(`{ ${script}\n} </dev/null 2>&1; printf '\\nexit %d\\n' $?; exit\n`);
    });
  }

  /** Like `shell`, but fails unless the script succeeds. Returns its output without the last line break. */
  async must(script: string, timeoutMs?: number): Promise<string> {
    const ran = await this.shell(script, timeoutMs);
    if (ran.code !== 0) throw new Error(`${script}: exit ${ran.code}\n${ran.stdout.slice(-4_000)}`);
    return ran.stdout.trimEnd();
  }

  /** Kills the machine. Unsynced data of the guest is lost. */
  async cutPower(): Promise<void> {
    const machine = this.#machine;
    if (machine === undefined || machine.exitCode !== null || machine.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => machine.once('exit', () => resolve()));
    machine.kill('SIGKILL');
    await ended;
    this.#machine = undefined;
  }

  /** Removes everything. It may be called at any time and repeatedly. */
  async stop(): Promise<void> {
    await this.cutPower();
    await run('umount', ['-l', join(this.#directory, 'root')]);
    await rm(this.#directory, { recursive: true, force: true });
  }
}

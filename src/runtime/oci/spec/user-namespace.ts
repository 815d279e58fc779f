/**
 * User namespaces of pods (KEP-127). A user namespace is pinned with the pod's other namespaces, which it owns. Files
 * of the host are visible to containers through idmapped mounts. Source: user_namespaces(7), mount_setattr(2).
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { chmod, chown, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { together } from '../../../base/concurrency/all-or-first-error.ts';
import { messageOf } from '../../../base/errors.ts';
import type { IdMapping } from '../../port.ts';
import { childEnvironment, runCommand } from '../command.ts';
import { mountPoints } from '../mount-table.ts';
import { findOnPath } from '../programs.ts';
import type { OciMount } from './mounts.ts';

/**
 * Program that clones a mount, maps its owners by a user namespace and attaches it elsewhere. It is written in Perl,
 * because mount(8) supports idmapped mounts only since util-linux 2.39. The numbers of its system calls are the same on
 * all architectures. The clone receives mounts of the host, but is a slave (0x80000), so that unmounting it unmounts
 * nothing on the host.
 */
const MAP_MOUNT = `
my ($namespace, $source, $target, $empty) = (@ARGV, "");
open(my $file, "<", $namespace) or die "$namespace: $!\\n";
my $tree = syscall(428, -100, $source, 0x80001 | 0x8000);
die "$source: $!\\n" if $tree < 0;
my $attributes = pack("QQQQ", 0x100000, 0, 0x80000, fileno($file));
syscall(442, $tree, $empty, 0x1000 | 0x8000, $attributes, 32) == 0
  or die "$source: the file system does not support idmapped mounts: $!\\n";
syscall(429, $tree, $empty, -100, $target, 4) == 0 or die "$target: $!\\n";
`;

export async function mapMount(namespace: string, source: string, target: string): Promise<void> {
  await runCommand('perl', ['-e', MAP_MOUNT, '--', namespace, source, target]);
}

/** Returns the reason why pods cannot have user namespaces on this host; undefined if they can. */
export async function whyNoUserNamespaces(): Promise<string | undefined> {
  if ((await findOnPath('perl')) === undefined) return 'perl is not installed, which is required for idmapped mounts';
  const directory = await mkdtemp(join(tmpdir(), 'he-idmap-'));
  try {
    await withNamespace(['user'], { hostId: 65_536, length: 65_536 }, async (pid) => {
      await Promise.all(['source', 'target'].map((name) => mkdir(join(directory, name))));
      await mapMount(`/proc/${pid}/ns/user`, join(directory, 'source'), join(directory, 'target'));
      await runCommand('umount', ['--lazy', join(directory, 'target')]);
    });
    return undefined;
  } catch (error) {
    return messageOf(error).replaceAll(directory, 'idmapped mount');
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Creates the namespaces in one step, so that the user namespace owns the others, and pins each at its file. */
export async function pinNamespaces(files: ReadonlyMap<string, string>, mapping: IdMapping): Promise<void> {
  await withNamespace([...files.keys()], mapping, async (pid) => {
    await together(
      [...files].map(async ([kind, file]) => {
        await writeFile(file, '', { flag: 'wx', mode: 0o600 });
        await runCommand('mount', ['--bind', `/proc/${pid}/ns/${kind}`, file]);
      }),
    );
  });
}

async function withNamespace(
  kinds: readonly string[],
  { hostId, length }: IdMapping,
  work: (pid: number) => Promise<void>,
): Promise<void> {
  // The process echoes its input once it is in its namespaces, and ends with its input.
  const child = spawn('unshare', [...kinds.map((kind) => `--${kind}`), '--', 'cat'], { env: { ...childEnvironment } });
  try {
    const pid = await echoing(child);
    for (const file of ['uid_map', 'gid_map']) await writeFile(`/proc/${pid}/${file}`, `0 ${hostId} ${length}\n`);
    await work(pid);
  } finally {
    child.stdin?.end();
  }
}

function echoing(child: ChildProcessWithoutNullStreams): Promise<number> {
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    // A child that could not be started for lack of file descriptors has no streams.
    if (child.pid === undefined) return;
    let output = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      if (output.length < 1_000) output += text;
    });
    child.stdin.on('error', () => {});
    child.stdin.write('\n');
    child.stdout.once('data', () => resolve(child.pid ?? 0));
    child.on('close', () => reject(new Error(output.trim() || 'unshare: no user namespace could be made')));
  });
}

/** Mount options that the kernel locks in a user namespace. Source: mount_namespaces(7). */
const RESTRICTIONS: ReadonlySet<string> = new Set(['nosuid', 'nodev', 'noexec']);

/** Directory in which the root of a container and its volumes are mounted for a user namespace. */
export class MappedRoot {
  readonly #directory: string;
  readonly #namespace: string;
  readonly #mapping: IdMapping;
  #mounts = 0;

  constructor(directory: string, namespace: string, mapping: IdMapping) {
    this.#directory = directory;
    this.#namespace = namespace;
    this.#mapping = mapping;
  }

  /**
   * Creates the directory, accessible to the container's root group. All users may traverse its parents, but cannot
   * find it without the container's ID, which is random.
   */
  async make(): Promise<void> {
    const { hostId } = this.#mapping;
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    for (let path = dirname(this.#directory); path !== '/'; path = dirname(path)) {
      const { mode, uid } = await stat(path);
      if (uid === 0 && (mode & 0o001) === 0) await chmod(path, (mode & 0o7777) | 0o001);
    }
    await chown(this.#directory, 0, hostId);
    await chmod(this.#directory, 0o710);
  }

  /** Mounts the layers with the container's owners; returns their paths relative to `directory`. */
  async mapLayers(layers: readonly string[]): Promise<{ readonly directory: string; readonly layers: string[] }> {
    const names = layers.map((_, index) => `l${index}`);
    await together(
      layers.map(async (layer, index) => {
        const target = join(this.#directory, `l${index}`);
        await mkdir(target);
        await mapMount(this.#namespace, layer, target);
      }),
    );
    return { directory: this.#directory, layers: names };
  }

  /** Makes the container's root user the owner of `path`. */
  async own(path: string): Promise<void> {
    await chown(path, this.#mapping.hostId, this.#mapping.hostId);
  }

  /**
   * Mounts the root where a process without access to the container's other directories can reach it; returns that
   * path.
   */
  async showRoot(rootfs: string): Promise<string> {
    const target = join(this.#directory, 'rootfs');
    await mkdir(target);
    await runCommand('mount', ['--bind', rootfs, target]);
    return target;
  }

  /**
   * Returns the volume's mount with mapped owners. The mount repeats the restrictions of the volume's file system: in a
   * user namespace the kernel refuses a change of the mount, for example to read-only, that would drop them.
   */
  async mapVolume(mount: OciMount): Promise<OciMount> {
    const target = join(this.#directory, `m${this.#mounts++}`);
    if ((await stat(mount.source)).isDirectory()) await mkdir(target);
    else await writeFile(target, '', { flag: 'wx', mode: 0o600 });
    await mapMount(this.#namespace, mount.source, target);
    const { options = [] } = (await mountPoints('self')).findLast(({ path }) => path === target) ?? {};
    const restrictions = options.filter((option) => RESTRICTIONS.has(option));
    return { ...mount, source: target, options: [...mount.options, ...restrictions] };
  }
}

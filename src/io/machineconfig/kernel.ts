/** The running kernel's arguments and the file in which the boot loader keeps those of the next boot. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { BootLoaderFile, HostKernel } from '../../components/openshift/machineconfigdaemon/port.ts';
import type { BootLoader } from '../../core/ignition/port.ts';
import type { Disk } from './disk.ts';

/** Raspberry Pi OS since 12, and before. */
const LOADERS: readonly (readonly [BootLoader, string])[] = [
  ['cmdline', '/boot/firmware/cmdline.txt'],
  ['cmdline', '/boot/cmdline.txt'],
  ['extlinux', '/boot/extlinux/extlinux.conf'],
];
const GRUB_DEFAULTS = '/etc/default/grub';
const GRUB_FILE = '/etc/default/grub.d/90-hyperedge.cfg';
/** Debian's and Red Hat's; both write a new file and rename it. */
const GRUB_CONFIGS = ['/boot/grub/grub.cfg', '/boot/grub2/grub.cfg'];
const ELSEWHERE = '/etc/kernel/cmdline';
const MAX_BYTES = 1024 * 1024;
const INSTALL_MS = 120_000;

/** `programs`: false below a root that is not the machine's own, where none is run. */
export function createHostKernel(disk: Disk, { programs }: { readonly programs: boolean }): HostKernel {
  const loader = async (): Promise<BootLoaderFile | { readonly file: string }> => {
    for (const [kind, file] of LOADERS) {
      const found = await fileAt(disk, file);
      if (found !== undefined) return { kind, file, ...found };
    }
    const grub = (await fileAt(disk, GRUB_DEFAULTS)) !== undefined && (await grubConfig(disk)) !== undefined;
    if (!grub) return { file: ELSEWHERE };
    const present = await fileAt(disk, GRUB_FILE);
    return { kind: 'grub', file: GRUB_FILE, ...(present ?? { text: '', mode: 0o644, uid: 0, gid: 0 }) };
  };
  return {
    loader,
    bootId: async () => (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim(),
    arguments: async () => (await readFile('/proc/cmdline', 'utf8')).trim(),
    async install() {
      const { file } = await loader();
      const config = await grubConfig(disk);
      if (file !== GRUB_FILE || config === undefined || !programs) return;
      const program = config.includes('grub2') ? 'grub2-mkconfig' : 'grub-mkconfig';
      try {
        const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };
        await promisify(execFile)(program, ['-o', config], { timeout: INSTALL_MS, env });
      } catch (error) {
        throw new CodedError('boot-loader', `${program} -o ${config}: ${messageOf(error).split('\n')[0]}`);
      }
    },
  };
}

async function grubConfig(disk: Disk): Promise<string | undefined> {
  for (const path of GRUB_CONFIGS) if ((await fileAt(disk, path)) !== undefined) return path;
  return undefined;
}

async function fileAt(disk: Disk, path: string) {
  const stat = await disk.stat(path).catch(() => undefined);
  if (stat?.kind !== 'file') return undefined;
  const { mode, uid, gid } = stat;
  return { text: new TextDecoder().decode(await disk.read(path, MAX_BYTES)), mode, uid, gid };
}

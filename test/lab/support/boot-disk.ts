/** A bootable disk: one partition with the host's root, and Debian's boot loader. */
import { copyFile, mkdir, open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '../../e2e/harness.ts';
import { succeed } from './rootfs.ts';

export type LabBootLoader = 'extlinux' | 'grub';

export const LAB_KERNEL_ARGUMENTS = 'rw console=ttyS0 net.ifnames=0 mitigations=off';
const ROOT = '/dev/vda1';
const SECTOR = 512;
const START_SECTORS = 2048;
const SIZE_MIB = 3072;
/** File system features to disable, because neither boot loader can read them. */
const FEATURES = '^64bit,^metadata_csum,^metadata_csum_seed,^orphan_file';
const BOOT_CODE_BYTES = 440;

/**
 * Makes a disk that boots with `loader`. `root`: mounted root file system of the host. `lower`: files of the packages,
 * with the programs of the boot loader.
 */
export async function makeBootDisk(loader: LabBootLoader, root: string, lower: string, disk: string): Promise<void> {
  const images = await readdir(join(lower, 'boot'));
  const kernel = images.find((name) => name.startsWith('vmlinuz-')) ?? 'vmlinuz';
  const initrd = images.find((name) => name.startsWith('initrd.img-')) ?? 'initrd.img';
  await (loader === 'extlinux' ? extlinuxFiles : grubFiles)(root, { kernel, initrd });
  const file = await open(disk, 'wx');
  try {
    await file.truncate(SIZE_MIB * 1024 * 1024);
    const offset = `offset=${START_SECTORS * SECTOR}`;
    const blocks = `${(SIZE_MIB - 1) * 1024}k`;
    await succeed('mkfs.ext4', ['-q', '-b', '4096', '-O', FEATURES, '-E', offset, '-d', root, disk, blocks]);
    await file.write(partitionTable(), 0, undefined, BOOT_CODE_BYTES);
    if (loader === 'extlinux') {
      await file.write(await readFile(join(lower, 'usr/lib/EXTLINUX/mbr.bin')), 0, BOOT_CODE_BYTES, 0);
      await file.sync();
      await installExtlinux(lower, disk);
    } else await installGrub(lower, disk, file);
  } finally {
    await file.close();
  }
}

interface Kernel {
  readonly kernel: string;
  readonly initrd: string;
}

async function extlinuxFiles(root: string, { kernel, initrd }: Kernel): Promise<void> {
  await mkdir(join(root, 'boot/extlinux'), { recursive: true });
  const lines = [
    ...['DEFAULT linux', 'PROMPT 0', 'TIMEOUT 1', 'SERIAL 0 115200', 'LABEL linux'],
    ...[`  KERNEL /boot/${kernel}`, `  INITRD /boot/${initrd}`, `  APPEND root=${ROOT} ${LAB_KERNEL_ARGUMENTS}`],
  ];
  await writeFile(join(root, 'boot/extlinux/extlinux.conf'), `${lines.join('\n')}\n`);
}

/**
 * Writes GRUB's configuration as Debian's package does. This function writes the first grub.cfg; later ones are written
 * by the host's grub-mkconfig.
 */
async function grubFiles(root: string, { kernel, initrd }: Kernel): Promise<void> {
  const target = join(root, 'boot/grub/i386-pc');
  await mkdir(target, { recursive: true });
  const source = join(root, 'usr/lib/grub/i386-pc');
  for (const name of await readdir(source))
    if (/\.(mod|lst)$/.test(name)) await copyFile(join(source, name), join(target, name));
  const defaults = [
    ...['GRUB_DEFAULT=0', 'GRUB_TIMEOUT=0', 'GRUB_DISTRIBUTOR=Debian', 'GRUB_TERMINAL=console'],
    ...['GRUB_DISABLE_OS_PROBER=true', 'GRUB_DISABLE_RECOVERY=true', 'GRUB_DISABLE_LINUX_UUID=true'],
    ...['GRUB_CMDLINE_LINUX_DEFAULT=""', `GRUB_CMDLINE_LINUX="${LAB_KERNEL_ARGUMENTS}"`],
  ];
  await writeFile(join(root, 'etc/default/grub'), `${defaults.join('\n')}\n`);
  const entry = [`linux /boot/${kernel} root=${ROOT} ${LAB_KERNEL_ARGUMENTS}`, `initrd /boot/${initrd}`];
  const config = `set timeout=0\nmenuentry first {\n  ${entry.join('\n  ')}\n}\n`;
  await writeFile(join(root, 'boot/grub/grub.cfg'), config);
}

/** Partition table with one active Linux partition, and the boot signature. */
function partitionTable(): Buffer {
  const table = Buffer.alloc(SECTOR - BOOT_CODE_BYTES);
  const entry = 446 - BOOT_CODE_BYTES;
  table[entry] = 0x80;
  table[entry + 4] = 0x83;
  table.writeUInt32LE(START_SECTORS, entry + 8);
  table.writeUInt32LE((SIZE_MIB - 1) * 1024 * 2, entry + 12);
  table.writeUInt16LE(0xaa55, table.length - 2);
  return table;
}

async function installExtlinux(lower: string, disk: string): Promise<void> {
  const mounted = `${disk}.mounted`;
  await mkdir(mounted);
  try {
    await succeed('mount', [
      '-o',
      `loop,offset=${START_SECTORS * SECTOR},sizelimit=${(SIZE_MIB - 1) * 1024 * 1024}`,
      disk,
      mounted,
    ]);
    await succeed(join(lower, 'usr/bin/extlinux'), ['--install', join(mounted, 'boot/extlinux')]);
  } finally {
    await run('umount', [mounted]);
    await rm(mounted, { recursive: true, force: true });
  }
}

/**
 * Writes GRUB to the boot sector and to the gap after it. GRUB's image finds its own blocks in this gap by default.
 * Source: GRUB's manual, 3.4.
 */
async function installGrub(lower: string, disk: string, file: Awaited<ReturnType<typeof open>>): Promise<void> {
  const core = `${disk}.core`;
  const modules = ['biosdisk', 'part_msdos', 'ext2', 'normal', 'linux', 'configfile', 'search', 'echo', 'test'];
  const directory = join(lower, 'usr/lib/grub/i386-pc');
  const prefix = '(hd0,msdos1)/boot/grub';
  const made = ['-O', 'i386-pc', '-d', directory, '-p', prefix, '-o', core, ...modules];
  try {
    await succeed(join(lower, 'usr/bin/grub-mkimage'), made);
    await file.write(await readFile(join(directory, 'boot.img')), 0, BOOT_CODE_BYTES, 0);
    await file.write(await readFile(core), 0, undefined, SECTOR);
    await file.sync();
  } finally {
    await rm(core, { force: true });
  }
}

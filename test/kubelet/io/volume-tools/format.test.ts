/**
 * Formatting of devices: only a disk that is verified as blank gets a file system. Uses real blkid and mkfs on loop
 * devices.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { silentLog } from '../../../../src/base/log.ts';
import { result } from '../../../../src/kubelet/io/volume-tools/run-tool.ts';
import { createVolumeTools } from '../../../../src/kubelet/io/volume-tools/volume-tools.ts';

const SIZE = 64 << 20;
const tools = createVolumeTools({ createdVolumes: '/nonexistent', log: silentLog });
const TOOLS = ['stat', 'dd', 'blockdev', 'mount', 'umount', 'blkid', 'mkfs.ext4', 'sh'];

describe('formatAndMount', { skip: process.getuid?.() !== 0 }, () => {
  let directory: string;
  let target: string;
  let image: string;
  const devices: string[] = [];
  const path = process.env['PATH'];

  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'he-format-'));
    target = join(directory, 'target');
    image = join(directory, 'image');
    mkdirSync(target);
  });
  afterEach(async () => {
    process.env['PATH'] = path;
    await tools.unmount(target);
    for (const device of devices.splice(0)) spawnSync('losetup', ['-d', device]);
    rmSync(image, { force: true });
  });
  after(() => rmSync(directory, { recursive: true, force: true }));

  const blank = (): void => {
    writeFileSync(image, '');
    truncateSync(image, SIZE);
  };
  const write = (offset: number, bytes: Uint8Array | string): void => {
    const input = Buffer.from(bytes);
    execFileSync('dd', [`of=${image}`, 'bs=1', `seek=${offset}`, 'conv=notrunc', 'status=none'], { input });
  };
  const attach = (): string => {
    const device = execFileSync('losetup', ['--find', '--show', image], { encoding: 'utf8' }).trim();
    devices.push(device);
    return device;
  };
  /** Makes the named programs, and the given replacements, the only ones on the path. */
  const onlyTools = (replaced: Readonly<Record<string, string>>, ...missing: string[]): void => {
    const programs = mkdtempSync(join(directory, 'bin-'));
    for (const tool of TOOLS.filter((each) => replaced[each] === undefined && !missing.includes(each))) {
      symlinkSync(
        execFileSync('which', [tool], { encoding: 'utf8', env: { PATH: path } }).trim(),
        join(programs, tool),
      );
    }
    for (const [name, body] of Object.entries(replaced)) {
      writeFileSync(join(programs, name), `#!/bin/sh\n${body}\n`);
      chmodSync(join(programs, name), 0o755);
    }
    process.env['PATH'] = programs;
  };
  const refuses = async (device: string, reason: RegExp, fsType = 'ext4', readOnly = false): Promise<void> => {
    const before = spawnSync('sha256sum', [image], { encoding: 'utf8', env: { PATH: path } }).stdout;
    await assert.rejects(tools.formatAndMount(device, target, fsType, readOnly), reason);
    assert.equal(spawnSync('sha256sum', [image], { encoding: 'utf8', env: { PATH: path } }).stdout, before);
    assert.ok(!readFileSync('/proc/self/mountinfo', 'utf8').includes(` ${target} `));
  };
  const withData = async (): Promise<void> => {
    blank();
    execFileSync('mkfs.ext4', ['-q', image]);
    const device = attach();
    await tools.formatAndMount(device, target, 'ext4', false);
    writeFileSync(join(target, 'data'), 'precious');
    await tools.unmount(target);
    for (const each of devices.splice(0)) execFileSync('losetup', ['-d', each]);
  };

  it('formats a blank device once and keeps its data', async () => {
    blank();
    const device = attach();
    await tools.formatAndMount(device, target, 'ext4', false);
    writeFileSync(join(target, 'data'), 'precious');
    await tools.unmount(target);
    await tools.formatAndMount(device, target, 'ext4', false);
    assert.equal(readFileSync(join(target, 'data'), 'utf8'), 'precious');
  });

  it('formats a blank image file', async () => {
    blank();
    await tools.formatAndMount(image, target, 'ext4', false);
    assert.match(readFileSync('/proc/self/mountinfo', 'utf8'), new RegExp(` ${target} .* ext4 `));
  });

  for (const [name, offset, bytes] of [
    ['btrfs', 0x10040, '_BHRfS_M'],
    ['FAT', 0, fatSector()],
  ] as const) {
    it(`rejects ext4 with an old ${name} signature and keeps the data`, async () => {
      await withData();
      write(offset, bytes);
      assert.equal(spawnSync('blkid', ['-p', image]).status, 8, 'the signatures are ambivalent');
      await refuses(attach(), /content not determined.*blkid: exit code 8/);
    });
  }

  it('rejects the device while blkid is missing, killed or fails', async () => {
    await withData();
    const device = attach();
    onlyTools({}, 'blkid');
    await refuses(device, /blkid: not installed on this node; install util-linux/);
    onlyTools({ blkid: 'kill -9 $$' });
    await refuses(device, /blkid: ended by SIGKILL/);
    for (const [body, reason] of [
      ['exit 4', /exit code 4/],
      ['echo "error: x" >&2; exit 2', /error: x/],
      ['exit 0', /no output/],
      ['echo DEVNAME=/dev/x', /content not determined/],
    ] as const) {
      onlyTools({ blkid: body });
      await refuses(device, reason);
    }
  });

  it('rejects an unreadable device, for which blkid reports no signature', async () => {
    blank();
    const device = attach();
    truncateSync(image, 0);
    assert.equal(spawnSync('blkid', ['-p', device]).status, 2);
    await refuses(device, /content not determined.*(?:Input\/output error|no capacity)/);
    await refuses(join(directory, 'absent'), /content not determined.*No such file/);
  });

  it('mounting a disk fails if a tool does not exit before its deadline', async () => {
    await assert.rejects(result('sleep', ['30'], 100), /sleep: no exit within 0.1 s/);
  });

  it('rejects partition tables, other file systems, and unformatted disks in read-only mode', async () => {
    blank();
    await refuses(attach(), /unformatted disk in read-only mode/, 'ext4', true);
    write(510, Buffer.from([0x55, 0xaa]));
    write(446, Buffer.from([0, 0, 2, 0, 0x83, 0, 3, 0, 1, 0, 0, 0, 0, 8, 0, 0]));
    await refuses(attach(), /contains a partition table, but fsType is ext4/);
    await withData();
    await refuses(attach(), /contains ext4, but fsType is xfs/, 'xfs');
  });
});

/** The boot sector of a FAT16 file system. */
function fatSector(): Buffer {
  const sector = Buffer.alloc(512);
  sector.set([0xeb, 0x3c, 0x90]);
  sector.write('mkfs.fat', 3);
  sector.writeUInt16LE(512, 11);
  sector.set([4], 13);
  sector.writeUInt16LE(4, 14);
  sector.set([2], 16);
  sector.writeUInt16LE(512, 17);
  sector.set([0xf8], 21);
  sector.writeUInt16LE(128, 22);
  sector.writeUInt32LE(131_072, 32);
  sector.set([0x80, 0, 0x29], 36);
  sector.write('NO NAME    FAT16   ', 43);
  sector.set([0x55, 0xaa], 510);
  return sector;
}

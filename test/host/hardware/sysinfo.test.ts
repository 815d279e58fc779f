import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { readHardware } from '../../../src/host/hardware/index.ts';
import { readKernelFeatures } from '../../../src/host/hardware/kernel.ts';

const DISK = { type: 'disk', mountpoint: null, label: null, fstype: null, parttype: null, rev: null };
const LSBLK = {
  blockdevices: [
    { ...DISK, name: 'sda', kname: 'sda', path: '/dev/sda', size: 4e12, model: 'ST4000VN', serial: 'Z1', rota: true },
    { ...DISK, name: 'sdb', kname: 'sdb', path: '/dev/sdb', size: 8e9, model: 'Stick', serial: 'U1', rota: false },
    { ...DISK, name: 'sdc', kname: 'sdc', path: '/dev/sdc', size: 1e12, model: 'WDC WD10', serial: 'W1', rota: true },
  ],
};
const SMART = (device: string, passed: boolean): string =>
  JSON.stringify({
    smartctl: { argv: ['smartctl', '-a', '-j', device], exit_status: 0 },
    device: { name: device },
    smart_status: { passed },
    temperature: { current: 41 },
    power_on_time: { hours: 26_280 },
    ata_smart_attributes: {
      table: [
        { id: 5, name: 'Reallocated_Sector_Ct', value: 97, worst: 97, thresh: 36, raw: { value: 12, string: '12' } },
      ],
    },
  });
const DMIDECODE = `Memory Device
\tSize: 16 GB
\tForm Factor: DIMM
\tLocator: DIMM_A1
\tBank Locator: BANK 0
\tType: DDR4
\tSpeed: 3200 MT/s
\tManufacturer: Samsung
\tSerial Number: 0001
\tPart Number: M391A2K43
\tConfigured Memory Speed: 2933 MT/s
`;
const LSUSB = `
Bus 001 Device 003: ID 0951:1666 Kingston Technology DataTraveler
Device Descriptor:
  idVendor           0x0951 Kingston Technology
  idProduct          0x1666 DataTraveler
  iProduct                2 DataTraveler 3.0
`;

/** Puts fake programs that print these texts before the host's on the path. */
async function withPrograms(programs: Record<string, string>, body: (path: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'sysinfo-'));
  try {
    for (const [name, script] of Object.entries(programs))
      await writeFile(join(directory, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    await body(`${directory}:/usr/sbin:/usr/bin:/sbin:/bin`);
  } finally {
    await rm(directory, { recursive: true });
  }
}

const prints = (text: string): string => `cat <<'END'\n${text}\nEND`;

test('reads SMART status, memory modules and USB devices, also with a disk without SMART', async () => {
  const smartctl = `for device in "$@"; do :; done
case "$device" in
/dev/sda) ${prints(SMART('/dev/sda', true))}
;;
/dev/sdc) ${prints(SMART('/dev/sdc', false))}
;;
*) ${prints(JSON.stringify({ smartctl: { argv: ['smartctl', '/dev/sdb'], exit_status: 2 } }))}
exit 2;;
esac`;
  const programs = {
    lsblk: prints(JSON.stringify(LSBLK)),
    smartctl,
    dmidecode: prints(DMIDECODE),
    lsusb: prints(LSUSB),
  };
  await withPrograms(programs, async (path) => {
    const hardware = await readHardware(path);
    assert.deepEqual(hardware.problems, []);
    const [sda, sdb, sdc] = hardware.disks;
    assert.deepEqual(
      [sda?.device, sda?.model, sda?.serial, sda?.temperatureCelsius],
      ['/dev/sda', 'ST4000VN', 'Z1', 41],
    );
    assert.deepEqual(sda?.smart, {
      passed: true,
      powerOnHours: 26_280,
      attributes: [{ id: 5, name: 'Reallocated_Sector_Ct', value: 97, worst: 97, threshold: 36, raw: '12' }],
    });
    assert.equal(sdb?.model, 'Stick');
    assert.equal(sdb?.smart, undefined);
    assert.equal(sdc?.smart?.passed, false);
    assert.equal(hardware.memory.totalBytes, totalmem());
    const [module] = hardware.memory.modules;
    assert.deepEqual(
      [module?.slot, module?.bytes, module?.type, module?.megahertz, module?.part],
      ['BANK 0', 16 * 2 ** 30, 'DDR4', 2933, 'M391A2K43'],
    );
    assert.equal(hardware.usb.length, 1);
    assert.deepEqual([hardware.usb[0]?.bus, hardware.usb[0]?.device], [1, 3]);
  });
});

test('reports the other facts of the hardware without smartctl, dmidecode and lsusb', async () => {
  await withPrograms(
    { lsblk: prints(JSON.stringify(LSBLK)), smartctl: 'exit 127', dmidecode: 'exit 1' },
    async (path) => {
      const hardware = await readHardware(path);
      assert.deepEqual(hardware.problems, []);
      assert.deepEqual(
        hardware.disks.map(({ device, smart }) => [device, smart]),
        [
          ['/dev/sda', undefined],
          ['/dev/sdb', undefined],
          ['/dev/sdc', undefined],
        ],
      );
      assert.ok(hardware.processor.threads > 0);
    },
  );
});

test('programs that read hardware facts do not inherit NODE_OPTIONS', async () => {
  const before = process.env['NODE_OPTIONS'];
  process.env['NODE_OPTIONS'] = '--no-warnings';
  try {
    const lsblk = `[ -z "$NODE_OPTIONS" ] && ${prints(JSON.stringify(LSBLK))}`;
    await withPrograms({ lsblk, smartctl: 'exit 127' }, async (path) => {
      assert.equal((await readHardware(path)).disks.length, 3);
    });
  } finally {
    if (before === undefined) delete process.env['NODE_OPTIONS'];
    else process.env['NODE_OPTIONS'] = before;
  }
});

test('reads kernel features from /proc, /sys and the kernel configuration', async () => {
  const root = await mkdtemp(join(tmpdir(), 'kernel-'));
  try {
    const files: Record<string, string> = {
      'proc/sys/kernel/osrelease': '6.1.0-13-arm64\n',
      'proc/filesystems': 'nodev\tproc\nnodev\toverlay\n\text4\n',
      'proc/self/ns/net': '',
      'proc/self/ns/mnt': '',
      'proc/self/ns/pid_for_children': '',
      'sys/kernel/security/lsm': 'lockdown,capability,apparmor',
      'proc/sys/kernel/seccomp/actions_avail': 'kill_process errno allow\n',
      'boot/config-6.1.0-13-arm64': 'CONFIG_VETH=m\nCONFIG_MEMCG=y\n# CONFIG_VXLAN is not set\n',
    };
    for (const [path, content] of Object.entries(files)) {
      await mkdir(join(root, path, '..'), { recursive: true });
      await writeFile(join(root, path), content);
    }
    const features = await readKernelFeatures(root);
    assert.equal(features.release, '6.1.0-13-arm64');
    assert.deepEqual(features.namespaces, ['mnt', 'net']);
    assert.deepEqual(features.securityModules, ['lockdown', 'capability', 'apparmor']);
    assert.deepEqual(features.seccompActions, ['kill_process', 'errno', 'allow']);
    assert.deepEqual([features.pressureStall, features.btf, features.overlay], [false, false, true]);
    assert.equal(features.configuration, '/boot/config-6.1.0-13-arm64');
    const { VETH, MEMCG, VXLAN } = features.options;
    assert.deepEqual([VETH, MEMCG, VXLAN], ['module', 'builtin', 'absent']);
    // The running kernel's own configuration takes precedence.
    await writeFile(join(root, 'proc/config.gz'), gzipSync('CONFIG_VXLAN=y\n'));
    assert.equal((await readKernelFeatures(root)).options['VXLAN'], 'builtin');
  } finally {
    await rm(root, { recursive: true });
  }
});

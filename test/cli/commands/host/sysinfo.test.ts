import assert from 'node:assert/strict';
import { test } from 'node:test';
import { printSystem } from '../../../../src/cli/commands/host/sysinfo.ts';
import { main } from '../../../../src/cli/index.ts';
import type { SystemInformation } from '../../../../src/host/hardware/sysinfo.ts';

const PI: SystemInformation = {
  hardware: {
    system: { manufacturer: 'Raspberry Pi Foundation', model: 'Raspberry Pi 5 Model B', serial: '10000000abcdef' },
    processor: { model: 'ARM Cortex-A76', sockets: 1, cores: 4, threads: 4, maxMegahertz: 2400, virtualization: false },
    memory: { totalBytes: 8 * 2 ** 30, swapBytes: 0, modules: [] },
    disks: [
      {
        device: '/dev/nvme0n1',
        type: 'NVMe',
        bytes: 500e9,
        model: 'WD SN740',
        temperatureCelsius: 52,
        smart: {
          passed: false,
          powerOnHours: 8760,
          percentageUsed: 104,
          attributes: [{ id: 5, name: 'Reallocated_Sector_Ct', value: 97, worst: 96, threshold: 36, raw: '12' }],
        },
      },
      { device: '/dev/sda', bytes: 8e9 },
    ],
    networkCards: [
      { name: 'eth0', mac: 'd8:3a:dd:00:00:01', state: 'up', megabitsPerSecond: 1000, addresses: ['192.0.2.7'] },
    ],
    usb: [],
    graphics: [],
    temperatures: { processorCelsius: 61.5, coresCelsius: [] },
    problems: ['usb: no answer within 20 s'],
  },
  cgroups: [{ mount: '/sys/fs/cgroup', version: 'v2', controllers: ['cpu', 'memory'] }],
  kernel: {
    release: '6.6.31',
    namespaces: ['mnt', 'net'],
    securityModules: [],
    seccompActions: ['errno'],
    pressureStall: true,
    btf: false,
    overlay: true,
    options: { VETH: 'module', VXLAN: 'absent' },
  },
};

test('prints sections only for what the host reports', () => {
  const text = printSystem(PI, false);
  assert.match(text, /^SYSTEM\n {2}manufacturer +Raspberry Pi Foundation\n/);
  assert.match(
    text,
    /^DISK +TYPE +SIZE +MODEL .*\n\/dev\/nvme0n1 +NVMe +466GiB +WD SN740 +- +- +52 +FAILED +8760 +104%\n/m,
  );
  assert.match(text, /^\/dev\/sda +- +7\.5GiB +- +- +- +- +- +- +-$/m);
  assert.match(text, /^eth0 +d8:3a:dd:00:00:01 +up +1000 +- +- +192\.0\.2\.7$/m);
  assert.match(text, /^ {2}processor +61\.5 °C$/m);
  assert.match(text, /^\/sys\/fs\/cgroup +v2 +cpu,memory$/m);
  assert.match(text, /^ {2}absent +VXLAN$/m);
  assert.match(text, /^ {2}1 +usb: no answer within 20 s$/m);
  for (const title of ['MODULE', 'USB', 'GRAPHICS', 'Reallocated']) assert.ok(!text.includes(title), title);
});

test('adds the SMART attributes with -o wide', () => {
  assert.match(
    printSystem(PI, true),
    /^SMART \/dev\/nvme0n1 +ATTRIBUTE .*\n5 +Reallocated_Sector_Ct +97 +96 +36 +12$/m,
  );
});

test('reads this host as text and JSON, and rejects an unknown format as a usage error', async () => {
  const run = async (...argv: string[]): Promise<{ code: number; stdout: string; stderr: string }> => {
    const answer = { code: 0, stdout: '', stderr: '' };
    answer.code = await main({
      argv: ['sysinfo', ...argv],
      argv0: 'hyperedge',
      out: {
        stdout: (text) => {
          answer.stdout += text;
        },
        stderr: (text) => {
          answer.stderr += text;
        },
      },
    });
    return answer;
  };
  const json = await run('-o', 'json');
  assert.equal(json.code, 0, json.stderr);
  const { hardware, cgroups, kernel } = JSON.parse(json.stdout) as SystemInformation;
  assert.ok(hardware.memory.totalBytes > 0);
  assert.ok(hardware.processor.threads > 0);
  assert.ok(cgroups.length > 0);
  assert.match(kernel.release, /^\d+\.\d+/);
  assert.ok(kernel.namespaces.includes('net'));
  const text = await run();
  assert.match(text.stdout, /^KERNEL\n {2}release/m);
  assert.equal((await run('-o', 'xml')).code, 2);
});

import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createHostCounters } from '../../../../src/kubelet/io/history/index.ts';

describe('host counters', () => {
  let root = '';
  const put = async (path: string, text: string): Promise<void> => {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  };
  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'he-counters-'));
  });
  after(() => rm(root, { recursive: true, force: true }));

  it('host counters that the host does not report are undefined', async () => {
    const counters = await createHostCounters({ root, monotonicMs: () => 0 })();
    assert.deepEqual(counters, {
      network: { receivedBytes: 0, sentBytes: 0 },
      pods: new Map(),
      diskReadBytes: undefined,
      diskWrittenBytes: undefined,
      flashWrittenBytes: undefined,
      pressure: { cpuSeconds: undefined, memorySeconds: undefined, ioSeconds: undefined },
      celsius: undefined,
      isThrottled: undefined,
    });
  });

  it('host counters contain disks, flash, interfaces, pods, pressure, temperature and throttling', async () => {
    await put('sys/block/mmcblk0/queue/rotational', '0');
    await put('sys/block/sda/queue/rotational', '1');
    await put('sys/block/dm-0/queue/rotational', '1');
    await put(
      'proc/diskstats',
      ' 179 0 mmcblk0 1 0 10 0 1 0 20 0 0 0 0\n 179 1 mmcblk0p1 1 0 10 0 1 0 20 0 0 0 0\n' +
        '   8 0 sda 1 0 100 0 1 0 200 0 0 0 0\n 254 0 dm-0 1 0 100 0 1 0 200 0 0 0 0\n',
    );
    await put('sys/class/net/eth0/device/vendor', 'x');
    await put('sys/class/net/lo/mtu', '1');
    await put(
      'proc/net/dev',
      'Inter-|   Receive\n face |bytes\n' +
        '    lo: 9 0 0 0 0 0 0 0 9 0 0 0 0 0 0 0\n  eth0: 1000 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0\n' +
        'veth1:30 1 0 0 0 0 0 0 40 1 0 0 0 0 0 0\n',
    );
    await put(
      'proc/net/route',
      'Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\n' +
        'eth0\t00000000\t0100A8C0\t0003\t0\t0\t0\t00000000\t0\n' +
        'veth1\t0500800A\t00000000\t0005\t0\t0\t0\tFFFFFFFF\t0\nbroken\n',
    );
    for (const [at, resource] of ['cpu', 'memory', 'io'].entries())
      await put(
        `proc/pressure/${resource}`,
        `some avg10=0.00 avg60=0.00 avg300=0.00 total=${at}500000\nfull total=9\n`,
      );
    await put('sys/class/thermal/thermal_zone0/temp', '45500\n');
    await put('sys/class/thermal/thermal_zone1/temp', '51250\n');
    await put('sys/class/thermal/thermal_zone2/temp', '-274000\n');
    await put('sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count', '3');
    const read = createHostCounters({ root, monotonicMs: () => 0 });
    assert.deepEqual(await read(), {
      network: { receivedBytes: 1_000, sentBytes: 2_000 },
      pods: new Map([['10.128.0.5', { receivedBytes: 40, sentBytes: 30 }]]),
      diskReadBytes: 110 * 512,
      diskWrittenBytes: 220 * 512,
      flashWrittenBytes: 20 * 512,
      pressure: { cpuSeconds: 0.5, memorySeconds: 1.5, ioSeconds: 2.5 },
      celsius: 51.25,
      isThrottled: false,
    });
    await put('sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count', '4');
    assert.equal((await read()).isThrottled, true);
    assert.equal((await read()).isThrottled, false);
    await put('sys/devices/platform/soc/soc:firmware/get_throttled', '50005');
    assert.equal((await read()).isThrottled, true);
    await put('sys/devices/platform/soc/soc:firmware/get_throttled', '50000');
    assert.equal((await read()).isThrottled, false, 'throttled in the past only');
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import type { Hierarchy } from '../../../src/kubelet/core/cgroups/port.ts';
import { PodCgroups } from '../../../src/kubelet/resources/cgroups.ts';

const V2: Hierarchy = { mount: '/cg', version: 'v2', controllers: ['cpu', 'memory', 'io'] };
const BLKIO: Hierarchy = { mount: '/cg/blkio', version: 'v1', controllers: ['blkio'] };
const POD = ['kubepods', 'podx'];

async function cgroupsWith(files: Readonly<Record<string, string>>, hierarchies: readonly Hierarchy[]) {
  const reads: string[] = [];
  const cgroups = new PodCgroups({
    files: {
      hierarchies: async () => hierarchies,
      perform: async () => {},
      list: async () => [],
      removeTree: async () => {},
      read: async (directory, file) => {
        reads.push(`${directory}/${file}`);
        return files[`${directory}/${file}`];
      },
    },
    slices: undefined,
    log: silentLog,
  });
  const allocatable = { cpuMilli: 1_000, memoryBytes: 1_000 };
  await cgroups.start({ root: [], allocatable, podPidsLimit: 0, cpuCfsQuota: true, memoryQos: false }, []);
  return { cgroups, reads };
}

describe('activity of a cgroup', () => {
  it('on cgroup v2, activity of a cgroup is the sum of all disks and the pressure', async () => {
    const { cgroups } = await cgroupsWith(
      {
        '/cg/kubepods/podx/io.stat':
          '8:0 rbytes=100 wbytes=200 rios=1 wios=1 dbytes=9\n179:0 rbytes=1 wbytes=2 rios=1\n',
        '/cg/kubepods/podx/cpu.pressure': 'some avg10=0 total=2500000\nfull avg10=0 total=9\n',
        '/cg/kubepods/podx/cpu.stat': 'usage_usec 10\nnr_throttled 1\nthrottled_usec 30\n',
        '/cg/kubepods/podx/memory.current': '5\n',
      },
      [V2],
    );
    assert.deepEqual(await cgroups.activity(POD), {
      diskReadBytes: 101,
      diskWrittenBytes: 202,
      pressure: { cpuSeconds: 2.5, memorySeconds: undefined, ioSeconds: undefined },
    });
    assert.equal((await cgroups.usage(POD))?.throttledNanoSeconds, 30_000);
  });

  it('on cgroup v1, activity of a cgroup is read from blkio', async () => {
    const { cgroups } = await cgroupsWith(
      {
        '/cg/blkio/kubepods/podx/blkio.throttle.io_service_bytes_recursive':
          '8:0 Read 300\n8:0 Write 400\n8:0 Sync 1\n8:16 Read 5\n8:16 Total 9\nTotal 705\n',
      },
      [BLKIO],
    );
    assert.deepEqual(await cgroups.activity(POD), {
      diskReadBytes: 305,
      diskWrittenBytes: 400,
      pressure: { cpuSeconds: undefined, memorySeconds: undefined, ioSeconds: undefined },
    });
  });

  it('does not read the pressure of pods if the kernel does not report pressure for the top-level cgroup', async () => {
    const { cgroups, reads } = await cgroupsWith({}, [V2]);
    await cgroups.activity(['kubepods']);
    await cgroups.activity(POD);
    assert.deepEqual(
      reads.filter((path) => path.endsWith('pressure')).map((path) => path.split('/')[2]),
      ['kubepods', 'kubepods', 'kubepods'],
    );
    assert.ok(!reads.includes('/cg/kubepods/podx/cpu.pressure'));
    assert.deepEqual((await cgroups.activity(POD)).diskReadBytes, undefined);
  });
});

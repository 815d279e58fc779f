import assert from 'node:assert/strict';
import { access, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { toUid } from '../../../src/base/brand.ts';
import { silentLog } from '../../../src/base/log.ts';
import { collectOrphans } from '../../../src/kubelet/housekeeping/garbage-collection.ts';
import { createCgroupFileSystem } from '../../../src/kubelet/io/cgroupfs/index.ts';
import { createKubeletFiles } from '../../../src/kubelet/io/files/index.ts';
import { createMounter } from '../../../src/kubelet/io/host-facts/index.ts';
import { PodDirectories } from '../../../src/kubelet/pods/directories.ts';
import type { PodTable } from '../../../src/kubelet/pods/pod-table.ts';
import type { PodServices } from '../../../src/kubelet/pods/services.ts';
import { PodCgroups } from '../../../src/kubelet/resources/cgroups.ts';
import { trees } from '../../../src/runtime/directory-removal/index.ts';

describe('leftovers of pods', () => {
  it('leftovers of pods are removed if this kubelet created them, and kept if another kubelet created them', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'kubelet-orphans-'));
    const root = `kubelet-orphans-${process.pid}`;
    const files = createCgroupFileSystem();
    const cgroups = new PodCgroups({ files, slices: undefined, log: silentLog });
    await cgroups.start(
      {
        root: [root],
        allocatable: { cpuMilli: 1000, memoryBytes: 1 << 30 },
        podPidsLimit: 0,
        cpuCfsQuota: true,
      },
      [],
    );
    try {
      const directories = new PodDirectories(
        {
          volumes: directory,
          podLogs: '',
          containerLogs: '',
          staticPods: '',
          images: '',
        },
        trees,
      );
      const pods = ['ours', 'kept', 'theirs'];
      for (const uid of pods) await cgroups.ensurePod({ metadata: { uid }, spec: { containers: [] } });
      for (const uid of ['ours', 'kept']) {
        await mkdir(directories.pod(toUid(uid)), { recursive: true });
        await writeFile(join(directories.pod(toUid(uid)), 'file'), '');
      }
      const services = {
        view: { uids: () => ['kept'] },
        directories,
        files: createKubeletFiles(createMounter()),
        cgroups,
        volumes: { tearDown: async () => {} },
        log: silentLog,
      } as unknown as PodServices;
      const manager = { apiHasSynced: true, workers: () => [] };
      await collectOrphans(services, { ...manager, apiHasSynced: false } as unknown as PodTable);
      await access(directories.pod(toUid('ours')));
      await collectOrphans(services, manager as unknown as PodTable);
      assert.deepEqual((await cgroups.list()).map((each) => each.uid).sort(), ['kept', 'theirs']);
      await assert.rejects(access(directories.pod(toUid('ours'))));
      await access(directories.pod(toUid('kept')));
    } finally {
      for (const hierarchy of await files.hierarchies()) await files.removeTree(`${hierarchy.mount}/${root}`);
      await rm(directory, { recursive: true, force: true });
    }
  });
});

/** Creations of containers that fail leave nothing on the host. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { toUid } from '../../../../src/base/brand.ts';
import type { ContainerConfig } from '../../../../src/runtime/port.ts';
import { BUSYBOX, createRuntimeLab, type RuntimeLab } from '../lab.ts';
import { inOwnNetworkNamespace } from '../netns.ts';

inOwnNetworkNamespace(import.meta.url, () => {
  describe('failed creation of a container', { timeout: 60_000 }, () => {
    let lab: RuntimeLab;
    let imageId: string;

    before(async () => {
      lab = await createRuntimeLab();
      imageId = (await lab.runtime().images.status(BUSYBOX))?.id ?? '';
    });
    after(() => lab?.cleanUp());

    const create = async (name: string, prepared: boolean): Promise<string> => {
      const sandbox = await lab.runtime().runPodSandbox({
        name,
        namespace: 'default',
        uid: toUid(name),
        attempt: 0,
        hostname: name,
        labels: {},
        annotations: {},
        logDirectory: join(lab.logRoot, name),
        cgroupParent: lab.cgroupParent(name),
        hostNetwork: true,
        hostPid: false,
        hostIpc: false,
        shareProcessNamespace: false,
        portMappings: [],
        sysctls: {},
        ...(prepared ? { firstImageId: imageId } : {}),
      });
      const config: ContainerConfig = {
        name: 'main',
        attempt: 0,
        image: BUSYBOX,
        imageId,
        env: [],
        mounts: [],
        devices: [],
        labels: {},
        command: ['/bin/sleep', '1000'],
        annotations: {},
        logPath: 'main/0.log',
        stdin: false,
        stdinOnce: false,
        tty: false,
        resources: { cpuShares: 2, cpuQuota: 0, cpuPeriod: 0, memoryLimitBytes: 0, oomScoreAdj: 500, pidsLimit: 0 },
        security: {
          privileged: false,
          supplementalGroups: [],
          readOnlyRootFilesystem: false,
          addCapabilities: [],
          allowPrivilegeEscalation: true,
          dropCapabilities: [],
          seccomp: 'unconfined',
          procMount: 'default',
        },
      };
      return lab.runtime().createContainer(sandbox, config);
    };
    const assertNothingLeft = async (): Promise<void> => {
      const containers = join(lab.directory, 'state/containers');
      assert.deepEqual(await readdir(containers), []);
      const mounts = await readFile('/proc/self/mountinfo', 'utf8');
      assert.ok(!mounts.includes(containers), 'no overlay is mounted');
    };

    for (const prepared of [false, true]) {
      it(`a container creation without a log directory leaves no files, ${prepared ? 'with' : 'without'} a prepared root`, async () => {
        const name = `log-${prepared}`;
        // A file in place of the log directory stands for a full or read-only disk.
        await mkdir(join(lab.logRoot, name), { recursive: true });
        await writeFile(join(lab.logRoot, name, 'main'), '');
        await assert.rejects(create(name, prepared), { code: 'create-failed', message: /EEXIST|ENOTDIR/ });
        await assertNothingLeft();
      });
    }
  });
});

/** Creations of containers that fail leave nothing on the host. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
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
    let directory: string;
    const hangs = (): string => join(directory, 'hangs');

    before(async () => {
      directory = await mkdtemp(join(tmpdir(), 'hanging-runc-'));
      const runc = join(directory, 'runc');
      // Hangs in `create` while the file exists, as runc does if a mount does not answer.
      const script = `case " $* " in *" create "*) [ ! -e ${hangs()} ] || { echo $$ >${hangs()}; sleep 1000; };; esac`;
      await writeFile(runc, `#!/bin/sh\n${script}\nexec runc "$@"\n`, { mode: 0o755 });
      lab = await createRuntimeLab({ programs: { runc } });
      imageId = (await lab.runtime().images.status(BUSYBOX))?.id ?? '';
    });
    after(async () => {
      await lab?.cleanUp();
      await rm(directory, { recursive: true, force: true });
    });

    const create = async (name: string, prepared: boolean, signal?: AbortSignal): Promise<string> => {
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
      return lab.runtime().createContainer(sandbox, config, signal);
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

      it(`a cancelled creation ends the hanging runtime and leaves no files, ${prepared ? 'with' : 'without'} a prepared root`, async () => {
        await writeFile(hangs(), '');
        const cancel = new AbortController();
        const creation = create(`cancelled-${prepared}`, prepared, cancel.signal);
        creation.catch(() => {});
        let pid = '';
        while (pid === '') pid = (await readFile(hangs(), 'utf8')).trim();
        await rm(hangs());
        const startMs = performance.now();
        cancel.abort();
        await assert.rejects(creation, { code: 'create-failed', message: /cancelled/ });
        assert.ok(performance.now() - startMs < 5_000);
        // A killed process is visible until its parent has read its exit code.
        const runs = (): Promise<boolean> =>
          readFile(`/proc/${pid}/cmdline`, 'utf8').then(
            (command) => command !== '',
            () => false,
          );
        while (await runs()) assert.ok(performance.now() - startMs < 5_000, 'the runtime runs');
        await assertNothingLeft();
      });
    }
  });
});

/**
 * Checkpoints with a fake runc that writes CRIU's images, because few test machines can run CRIU; and with the real
 * one.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { toUid } from '../../../../src/base/brand.ts';
import type { ContainerConfig } from '../../../../src/runtime/port.ts';
import { BUSYBOX, createRuntimeLab, type RuntimeLab } from '../lab.ts';
import { inOwnNetworkNamespace } from '../netns.ts';

const run = promisify(execFile);

inOwnNetworkNamespace(import.meta.url, () => {
  describe('checkpoint of a container', { timeout: 60_000 }, () => {
    let lab: RuntimeLab;
    let programs: string;
    let id: string;

    before(async () => {
      programs = await mkdtemp(join(tmpdir(), 'he-criu-'));
      const runc = join(programs, 'runc');
      await writeFile(
        runc,
        `#!/bin/sh
case " $* " in *" checkpoint "*) ;; *) exec /usr/sbin/runc "$@" ;; esac
if [ -e ${programs}/broken ]; then echo 'criu failed: type NOTIFY errno 0' >&2; exit 1; fi
while [ "$1" != --image-path ]; do shift; done
echo image > "$2/pages-1.img"
`,
      );
      await chmod(runc, 0o755);
      lab = await createRuntimeLab({ programs: { runc } });
      const imageId = (await lab.runtime().images.status(BUSYBOX))?.id ?? '';
      const sandbox = await lab.runtime().runPodSandbox({
        name: 'p',
        namespace: 'default',
        uid: toUid('u'),
        attempt: 0,
        hostname: 'p',
        labels: {},
        annotations: {},
        logDirectory: join(lab.logRoot, 'p'),
        cgroupParent: lab.cgroupParent('p'),
        hostNetwork: true,
        hostPid: false,
        hostIpc: false,
        shareProcessNamespace: false,
        portMappings: [],
        sysctls: {},
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
        command: ['/bin/sh', '-c', 'echo kept > /written; sleep 1000'],
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
      id = await lab.runtime().createContainer(sandbox, config);
      await lab.runtime().startContainer(id);
    });
    after(async () => {
      await lab?.cleanUp();
      await rm(programs, { recursive: true, force: true });
    });

    it('a checkpoint is a private archive of the CRIU images, the specification and the written files', async () => {
      const directory = join(lab.directory, 'checkpoints');
      const location = join(directory, 'one.tar');
      await lab.runtime().checkpointContainer?.(id, location);
      const { stdout } = await run('tar', ['-tf', location]);
      for (const name of ['./checkpoint/pages-1.img', './spec.dump', './config.dump', './rootfs-diff.tar'])
        assert.ok(stdout.split('\n').includes(name), `${name} in ${stdout}`);
      const { stdout: inner } = await run('sh', [
        '-c',
        `tar -xOf ${location} ./rootfs-diff.tar | tar -xOf - ./written`,
      ]);
      assert.equal(inner, 'kept\n');
      assert.equal((await stat(location)).mode & 0o777, 0o600);
      assert.deepEqual(await readdir(directory), ['one.tar']);
      assert.equal((await lab.runtime().listContainers()).find((each) => each.id === id)?.state, 'running');
    });

    it("a failed checkpoint reports CRIU's message and leaves no files", async () => {
      await mkdir(join(programs, 'broken'));
      const directory = join(lab.directory, 'failed');
      await assert.rejects(async () => lab.runtime().checkpointContainer?.(id, join(directory, 'x.tar')), {
        code: 'internal',
        message: /criu failed: type NOTIFY errno 0/,
      });
      assert.deepEqual(await readdir(directory), []);
    });
  });
});

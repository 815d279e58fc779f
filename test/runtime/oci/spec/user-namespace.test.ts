/** Pods in their own user namespaces: their root user is unprivileged on the host, and they own their files. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { toUid } from '../../../../src/base/brand.ts';
import { whyNoUserNamespaces } from '../../../../src/runtime/oci/spec/user-namespace.ts';
import type { ContainerConfig, ContainerSecurity, SandboxConfig } from '../../../../src/runtime/port.ts';
import { BUSYBOX, createRuntimeLab, type RuntimeLab } from '../lab.ts';
import { inOwnNetworkNamespace } from '../netns.ts';

const HOST_ID = 65_536 * 9;
const why = await whyNoUserNamespaces();
console.log(`user namespaces with idmapped mounts: ${why ?? 'yes'}`);

inOwnNetworkNamespace(import.meta.url, () => {
  describe('pod in a separate user namespace', { timeout: 60_000, skip: why ?? false }, () => {
    let lab: RuntimeLab;
    let imageId = '';
    let sandboxId = '';
    const security: ContainerSecurity = {
      privileged: false,
      supplementalGroups: [],
      readOnlyRootFilesystem: false,
      allowPrivilegeEscalation: true,
      addCapabilities: ['SYS_ADMIN'],
      dropCapabilities: [],
      seccomp: 'runtime/default',
      procMount: 'default',
    };
    const container = (name: string, script: string, volume: string): ContainerConfig => ({
      name,
      attempt: 0,
      image: BUSYBOX,
      imageId,
      command: ['/bin/sh', '-c', script],
      env: [],
      devices: [],
      mounts: [{ hostPath: volume, containerPath: '/data', readOnly: false, propagation: 'private' }],
      labels: {},
      annotations: {},
      logPath: `${name}/0.log`,
      stdin: false,
      stdinOnce: false,
      tty: false,
      resources: { cpuShares: 2, cpuQuota: 0, cpuPeriod: 0, memoryLimitBytes: 0, oomScoreAdj: 500, pidsLimit: 0 },
      security,
    });
    const sandbox = (overrides: Partial<SandboxConfig> = {}): SandboxConfig => ({
      name: 'users',
      namespace: 'default',
      uid: toUid('uid-users'),
      attempt: 0,
      hostname: 'users',
      labels: {},
      annotations: {},
      logDirectory: join(lab.logRoot, 'users'),
      cgroupParent: lab.cgroupParent('users'),
      hostNetwork: false,
      hostPid: false,
      hostIpc: false,
      shareProcessNamespace: false,
      portMappings: [],
      sysctls: { 'net.ipv4.ip_unprivileged_port_start': '100' },
      userNamespace: { hostId: HOST_ID, length: 65_536 },
      ...overrides,
    });

    before(async () => {
      lab = await createRuntimeLab();
      imageId = (await lab.runtime().images.status(BUSYBOX))?.id ?? '';
      sandboxId = await lab.runtime().runPodSandbox(sandbox());
    });
    after(() => lab?.cleanUp());

    it('a pod with a user namespace is root inside and an ordinary user on the host', async () => {
      const volume = join(lab.directory, 'volume');
      await mkdir(volume);
      await writeFile(join(volume, 'before'), 'x', { mode: 0o600 });
      const script =
        'id -u; cat /proc/self/uid_map; stat -c %u /bin /data/before; echo y > /data/made; touch /root-file; ' +
        'cat /proc/sys/net/ipv4/ip_unprivileged_port_start; chown 7:7 /data/made; mount -t tmpfs t /mnt 2>&1; sleep 1000';
      const id = await lab.runtime().createContainer(sandboxId, container('main', `mkdir /mnt; ${script}`, volume));
      await lab.runtime().startContainer(id);
      const listed = (await lab.runtime().listContainers()).find((each) => each.id === id);
      let lines: string[] = [];
      for (let tries = 0; lines.length < 5 && tries < 200; tries++) {
        const log = await readFile(listed?.logPath ?? '', 'utf8').catch(() => '');
        lines = log.split('\n').flatMap((line) => line.split(' ').slice(3).join(' ').trim() || []);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      assert.deepEqual(lines.map((line) => line.replaceAll(/\s+/g, ' ')).slice(0, 5), [
        '0',
        `0 ${HOST_ID} 65536`,
        '0',
        '0',
        '100',
      ]);
      assert.match(await readFile(`/proc/${listed?.pid}/status`, 'utf8'), new RegExp(`^Uid:\\s+${HOST_ID}\\s`, 'm'));
      // Files in the volume are owned by ids of the pod, whatever range it has.
      assert.equal((await stat(join(volume, 'made'))).uid, 7);
      const result = await lab.runtime().execSync(id, ['/bin/sh', '-c', 'id -u; cat /data/before; ls -ln /root-file'], {
        timeoutMs: 10_000,
        maxOutputBytes: 1_000,
      });
      const text = new TextDecoder().decode(result.stdout);
      assert.match(text, /^0\nx-rw-r--r--\s+1 0\s+0/);
    });

    it('a pod with a user namespace is restored after a restart, and leaves no mounts when it is removed', async () => {
      await lab.restart();
      const [found] = await lab.runtime().listPodSandboxes();
      assert.equal(found?.state, 'ready');
      const volume = join(lab.directory, 'volume');
      const id = await lab.runtime().createContainer(sandboxId, container('second', 'sleep 1000', volume));
      await lab.runtime().startContainer(id);
      const pid = (await lab.runtime().listContainers()).find((each) => each.id === id)?.pid;
      assert.match(await readFile(`/proc/${pid}/uid_map`, 'utf8'), new RegExp(`\\b${HOST_ID}\\b`));
      await lab.runtime().removePodSandbox(sandboxId);
      assert.doesNotMatch(await readFile('/proc/self/mountinfo', 'utf8'), new RegExp(lab.directory));
      assert.deepEqual(await readdir(join(lab.directory, 'run/mapped')), []);
    });

    it('a pod with a user namespace is rejected if a volume does not support idmapped mounts', async () => {
      const id = await lab.runtime().runPodSandbox(sandbox({ uid: toUid('uid-2'), name: 'two' }));
      await assert.rejects(lab.runtime().createContainer(id, container('main', 'true', '/proc/sys')), {
        code: 'create-failed',
        message: /does not support idmapped mounts/,
      });
      await lab.runtime().removePodSandbox(id);
    });
  });
});

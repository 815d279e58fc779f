import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { silentLog } from '../../../src/base/log.ts';
import { PodSandbox } from '../../../src/kubelet/pods/pod-sandbox.ts';
import type { PodServices } from '../../../src/kubelet/pods/services.ts';
import { VolumeError } from '../../../src/kubelet/volumes/manager.ts';
import type { SandboxConfig } from '../../../src/runtime/port.ts';
import { ManualClock } from '../../client/clocks.ts';

const pod: Pod = {
  metadata: { name: 'web', namespace: 'shop', uid: 'u1' },
  spec: { containers: [{ name: 'c', image: 'lab.local/web:1' }] },
};

function subject(parts: { readonly areImmediate?: boolean; readonly volumes: () => Promise<void> }) {
  const did: string[] = [];
  const configs: SandboxConfig[] = [];
  const clock = new ManualClock();
  let failsCgroup = false;
  const services = {
    clock,
    log: silentLog,
    hostInfo: { hostname: 'node' },
    settings: { nodeIps: [], clusterDns: [], clusterDomain: 'cluster.local' },
    host: { resolvConf: async () => '' },
    files: { pods: { makeDirectory: async () => {} } },
    directories: { pod: () => '/pods/u1', logs: () => '/logs/u1' },
    events: { pod: (_pod: Pod, _type: string, reason: string) => did.push(`event ${reason}`) },
    runtimeClasses: { handlerOf: async () => undefined },
    userNamespaces: { mappingOf: async () => undefined },
    cgroups: {
      parentOf: () => '/kubepods/podu1',
      ensurePod: async () => {
        if (failsCgroup) throw new Error('no room for a cgroup');
      },
    },
    volumes: {
      areImmediate: () => parts.areImmediate !== false,
      setUp: async () => {
        did.push('volumes begin');
        await parts.volumes();
        did.push('volumes end');
      },
    },
    runtime: {
      images: { status: async (image: string) => ({ id: `id of ${image}` }) },
      runPodSandbox: async (config: SandboxConfig) => {
        configs.push(config);
        did.push('sandbox made');
        return 's1';
      },
      stopPodSandbox: async (id: string) => did.push(`stopped ${id}`),
      removePodSandbox: async (id: string) => did.push(`removed ${id}`),
    },
  };
  const sandbox = new PodSandbox(services as unknown as PodServices, 'api', (reason) => did.push(`failed ${reason}`));
  return {
    did,
    configs,
    clock,
    sandbox,
    create: () => sandbox.create(pod, { type: 'createSandbox', attempt: 0, replaces: [] }),
    failCgroup: () => {
      failsCgroup = true;
    },
  };
}

test('creates the sandbox while volumes without drivers or claims are being set up', async () => {
  const slow = Promise.withResolvers<void>();
  const { create, did, configs, sandbox, clock } = subject({ volumes: () => slow.promise });
  const creating = create();
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  assert.deepEqual(did, ['volumes begin', 'sandbox made']);
  slow.resolve();
  await creating;
  assert.equal(configs[0]?.firstImageId, 'id of lab.local/web:1');
  assert.equal(sandbox.areVolumesFresh, true);
  await clock.advance(1_500);
  assert.equal(sandbox.areVolumesFresh, false);
});

test('removes the sandbox when volumes fail, and sets up the volumes first at the next attempt', async () => {
  let missing = true;
  const { create, did } = subject({
    volumes: async () => {
      if (missing) throw new VolumeError('config', new Error('configmap "settings" not found'));
    },
  });
  await assert.rejects(create(), /configmap "settings" not found/);
  assert.deepEqual(did.splice(0), ['volumes begin', 'event FailedMount', 'sandbox made', 'stopped s1', 'removed s1']);
  await assert.rejects(create(), /not found/);
  assert.deepEqual(did.splice(0), ['volumes begin', 'event FailedMount']);
  missing = false;
  await create();
  assert.deepEqual(did, ['volumes begin', 'volumes end', 'sandbox made']);
});

test('sets up volumes with drivers or claims before the sandbox', async () => {
  const { create, did } = subject({ areImmediate: false, volumes: async () => {} });
  await create();
  assert.deepEqual(did, ['volumes begin', 'volumes end', 'sandbox made']);
});

test('removes a sandbox whose cgroup cannot be created', async () => {
  const { create, did, failCgroup } = subject({ volumes: async () => {} });
  failCgroup();
  await assert.rejects(create(), /no room for a cgroup/);
  assert.deepEqual(did.slice(-3), ['stopped s1', 'removed s1', 'event FailedCreatePodSandBox']);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { startServices } from '../../../src/base/services.ts';
import { systemClock as clock } from '../../../src/host/process/process.ts';
import { HOST_SERVICES } from '../../../src/host/run/host.ts';
import type { HostContext, HostServices, HostStop } from '../../../src/host/run/services/values.ts';
import { slowStages } from '../../../src/host/run/start-stages.ts';

type Name = keyof HostServices;

/** Runs the list of services with starts and stops that do nothing. Returns both orders. */
async function orders(): Promise<{ readonly started: readonly Name[]; readonly stopped: readonly Name[] }> {
  const started: Name[] = [];
  const stopped: Name[] = [];
  const idle = HOST_SERVICES.map((service) => ({
    ...service,
    start: () => {
      started.push(service.name);
      return undefined;
    },
    stop: () => void stopped.push(service.name),
  }));
  const mode: HostStop = { keepPods: true, hurry: new AbortController().signal };
  const running = await startServices<HostContext, HostServices, HostStop>(idle, {} as HostContext, {
    clock,
    log: silentLog,
    onFailure: mode,
  });
  await running.stop(mode);
  return { started, stopped };
}

function assertOrder(found: readonly Name[], ...expected: readonly Name[]): void {
  assert.deepEqual(
    found.filter((name) => expected.includes(name)),
    expected,
  );
}

test('starts the lock first, the kubelet before its dependents, and the control socket last', async () => {
  const { started } = await orders();
  assert.deepEqual(started.slice(0, 3), ['diskReserve', 'instanceLock', 'settings']);
  assertOrder(
    started,
    'runtime',
    'portCheck',
    'files',
    'revisions',
    'gossip',
    'balancer',
    'api',
    'podNetwork',
    'kubelet',
  );
  assertOrder(started, 'kubelet', 'ownAddress', 'networkServices', 'networkRepair', 'sharedAddress', 'control');
  assert.equal(started.at(-1), 'control');
});

test('stops shared addresses and API clients before the pods, and the network and the lock after the pods', async () => {
  const { stopped } = await orders();
  assertOrder(stopped, 'sharedAddress', 'roleLabels', 'lastKnownEnd', 'gossipLeave', 'kubelet');
  assertOrder(stopped, 'networkRepair', 'snapshots', 'ownAddress', 'certificateRenewal', 'kubelet');
  for (const extension of ['imageWork', 'machineConfig', 'updates', 'router'] as const)
    assertOrder(stopped, extension, 'keyring');
  assertOrder(
    stopped,
    'kubelet',
    'networkServices',
    'recorder',
    'informers',
    'control',
    'balancer',
    'gossip',
    'runtime',
  );
  assert.equal(stopped.indexOf('instanceLock'), stopped.length - 2, 'only the disk reserve stops later');
});

test('prints the stages of the start that took noticeable time', () => {
  const stages = [
    { name: 'settings', ms: 3 },
    { name: 'runtime', ms: 410 },
    { name: 'kubelet', ms: 97 },
  ];
  assert.equal(slowStages(stages), 'started 3 services in 0.51 s: runtime 0.41 s, kubelet 0.10 s');
  assert.equal(slowStages(stages.slice(0, 1)), 'started 1 service in 0.00 s');
});

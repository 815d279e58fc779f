import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import type { KubeObject, ResourceType } from '../../../src/api/meta/object.ts';
import { ApiError } from '../../../src/api/meta/status.ts';
import { resources } from '../../../src/api/resources.ts';
import { toUid } from '../../../src/base/brand.ts';
import { silentLog } from '../../../src/base/log.ts';
import type { ApiClient, ResourceClient } from '../../../src/client/types.ts';
import { StatusManager } from '../../../src/kubelet/pods/status-manager.ts';
import { ManualClock } from '../../client/clocks.ts';
import { realClock } from '../lab.ts';
import { MemoryApi } from '../memory-api.ts';

const UID = toUid('u');
const pending = (): Pod => ({
  metadata: { name: 'steady', namespace: 'default', uid: UID },
  status: { phase: 'Pending' },
});
const phaseAt = (api: MemoryApi): string | undefined => api.get(resources.pods, 'default/steady')?.status?.phase;

async function started(api: MemoryApi): Promise<StatusManager> {
  api.put(resources.pods, pending());
  const statuses = new StatusManager({ clock: realClock, log: silentLog });
  statuses.connect(api.client());
  statuses.setTarget(UID, pending());
  statuses.set(UID, { phase: 'Running' });
  for (let i = 0; i < 20 && phaseAt(api) !== 'Running'; i += 1) await turn();
  assert.equal(phaseAt(api), 'Running');
  return statuses;
}

test('stops status writes for pods that a stopping host ends, even if more status reports arrive', async () => {
  const api = new MemoryApi();
  const statuses = await started(api);
  statuses.stop();
  statuses.set(UID, { phase: 'Failed' });
  // The watch delivers the last earlier write while the pods are being ended.
  statuses.setTarget(UID, { ...pending(), status: { phase: 'Running' } });
  statuses.finish(UID);
  for (let i = 0; i < 20; i += 1) await turn();
  assert.equal(phaseAt(api), 'Running');
});

test('writes the status of a pod that has failed before the host stops', async () => {
  const api = new MemoryApi();
  const statuses = await started(api);
  statuses.set(UID, { phase: 'Failed' });
  for (let i = 0; i < 20 && phaseAt(api) !== 'Failed'; i += 1) await turn();
  assert.equal(phaseAt(api), 'Failed');
  statuses.stop();
});

/** API that rejects every status patch with fields other than phase, reason and message. */
function strict(api: MemoryApi, attempts: object[]): ApiClient {
  const client = api.client();
  return {
    ...client,
    resource: <T extends KubeObject>(type: ResourceType<T>): ResourceClient<T> => {
      const inner = client.resource(type);
      return {
        ...inner,
        patch: (name, namespace, kind, patch, options) => {
          const { status = {} } = patch as { readonly status?: object };
          attempts.push(status);
          if (Object.keys(status).some((field) => !['phase', 'reason', 'message'].includes(field)))
            return Promise.reject(new ApiError('Invalid', 'status.containerStatuses[0].linux: Forbidden'));
          return inner.patch(name, namespace, kind, patch, options);
        },
      };
    },
  };
}

const turns = async (): Promise<void> => {
  for (let i = 0; i < 50; i += 1) await turn();
};

const running = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } as const;

test('writes the essential fields of a rejected status once, and the pod can still terminate', async () => {
  const api = new MemoryApi();
  const attempts: object[] = [];
  const stored = api.put(resources.pods, pending());
  const statuses = new StatusManager({ clock: realClock, log: silentLog });
  statuses.connect(strict(api, attempts));
  statuses.setTarget(UID, stored);
  statuses.set(UID, { ...running, conditions: [...running.conditions] });
  await turns();
  const seen = api.get(resources.pods, 'default/steady');
  assert.equal(seen?.status?.phase, 'Running');
  assert.match(seen.status.message ?? '', /^status: status\.containerStatuses\[0\]\.linux: Forbidden/);
  assert.equal(attempts.length, 2, JSON.stringify(attempts));
  // Other changes of the pod do not send the rejected status again.
  for (let i = 0; i < 10; i += 1) {
    statuses.setTarget(UID, seen);
    statuses.set(UID, { ...running, conditions: [...running.conditions] });
    await turns();
  }
  assert.equal(attempts.length, 2, JSON.stringify(attempts));
  statuses.set(UID, { ...running, phase: 'Failed', conditions: [...running.conditions] });
  statuses.setTarget(UID, { ...seen, metadata: { ...seen.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
  statuses.finish(UID);
  await turns();
  assert.equal(api.get(resources.pods, 'default/steady'), undefined);
  statuses.stop();
});

test('the status manager keeps the last status of a pod while the API is unreachable', async () => {
  const api = new MemoryApi();
  const stored = api.put(resources.pods, {
    ...pending(),
    metadata: { ...pending().metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
  });
  const statuses = new StatusManager({ clock: realClock, log: silentLog });
  const client = api.client();
  statuses.connect({
    ...client,
    resource: <T extends KubeObject>(type: ResourceType<T>) => ({
      ...client.resource(type),
      patch: () => Promise.reject(new ApiError('InternalError', 'not now')),
    }),
  });
  statuses.setTarget(UID, stored);
  statuses.set(UID, { phase: 'Succeeded' });
  statuses.finish(UID);
  await turns();
  assert.notEqual(api.get(resources.pods, 'default/steady'), undefined);
  statuses.stop();
});

test('shows a pod that ends immediately as terminating for a short time', async () => {
  const api = new MemoryApi();
  const statuses = await started(api);
  const deletionTimestamp = '2026-01-01T00:00:00Z';
  const graceful = { ...pending().metadata, deletionTimestamp, deletionGracePeriodSeconds: 60 };
  const beganMs = performance.now();
  statuses.setTarget(UID, { ...pending(), metadata: graceful, status: { phase: 'Running' } });
  statuses.finish(UID);
  await turns();
  assert.ok(api.get(resources.pods, 'default/steady'), 'a client that reads after its deletion finds the pod');
  while (api.get(resources.pods, 'default/steady') !== undefined && performance.now() - beganMs < 5_000)
    await new Promise((resolve) => setTimeout(resolve, 5));
  const tookMs = performance.now() - beganMs;
  assert.ok(tookMs >= 240 && tookMs < 5_000, `${tookMs} ms`);
  statuses.stop();
});

test('writes the last status with the generation of the deletion before the pod is removed', async () => {
  const api = new MemoryApi();
  const statuses = await started(api);
  const deleted = {
    ...pending().metadata,
    generation: 2,
    deletionTimestamp: '2026-01-01T00:00:00Z',
    deletionGracePeriodSeconds: 0,
  };
  api.put(resources.pods, { metadata: deleted, status: { phase: 'Running' } });
  api.requests.length = 0;
  let last: Pod | undefined;
  const watch = api.client().resource(resources.pods).watch({});
  const seen = (async () => {
    for await (const { type, object } of watch) {
      if (type === 'DELETED') return;
      last = object;
    }
  })();
  await turn();
  statuses.setTarget(UID, { ...pending(), metadata: deleted, status: { phase: 'Running' } });
  statuses.set(UID, { phase: 'Succeeded', observedGeneration: 2 });
  statuses.finish(UID);
  await seen;
  assert.deepEqual(last?.status, { phase: 'Succeeded', observedGeneration: 2 });
  assert.deepEqual(
    api.requests.filter((each) => !each.startsWith('watch')),
    ['patch pods steady status', 'delete pods steady'],
  );
  statuses.stop();
});

test('does not overwrite a condition of another component with its old value', async () => {
  const api = new MemoryApi();
  const gate = (status: string): NonNullable<Pod['status']> => ({
    phase: 'Running',
    conditions: [{ type: 'example.com/g', status }],
  });
  const stored = api.put(resources.pods, { ...pending(), status: gate('False') });
  const statuses = new StatusManager({ clock: realClock, log: silentLog });
  statuses.connect(api.client());
  statuses.setTarget(UID, stored);
  // This status was computed before the gate was closed.
  statuses.set(UID, { ...gate('True'), hostIP: '192.0.2.1' });
  await turns();
  const seen = api.get(resources.pods, 'default/steady')?.status;
  assert.equal(seen?.hostIP, '192.0.2.1');
  assert.deepEqual(seen?.conditions, [{ type: 'example.com/g', status: 'False' }]);
  statuses.stop();
});

test('delays condition updates of a starting pod, but no other status change', async () => {
  const api = new MemoryApi();
  const clock = new ManualClock();
  const stored = api.put(resources.pods, pending());
  const written: string[] = [];
  const client = api.client();
  const statuses = new StatusManager({ clock, log: silentLog });
  statuses.connect({
    ...client,
    resource: <T extends KubeObject>(type: ResourceType<T>): ResourceClient<T> => {
      const inner = client.resource(type);
      return {
        ...inner,
        patch: (name, namespace, kind, patch, options) => {
          const { status } = patch as { readonly status: { readonly phase?: string; readonly podIP?: string } };
          written.push(status.phase ?? status.podIP ?? 'conditions');
          return inner.patch(name, namespace, kind, patch, options);
        },
      };
    },
  });
  const creating = (ip?: string, waiting = 'ContainerCreating') => ({
    phase: 'Pending',
    conditions: [{ type: 'PodReadyToStartContainers', status: ip === undefined ? 'False' : 'True' }],
    containerStatuses: [
      { name: 'c', image: 'i', imageID: '', ready: false, restartCount: 0, state: { waiting: { reason: waiting } } },
    ],
    ...(ip === undefined ? {} : { podIP: ip }),
  });
  statuses.setTarget(UID, stored);
  statuses.set(UID, creating());
  await clock.advance(100);
  statuses.set(UID, creating('10.0.0.1'));
  await clock.advance(100);
  assert.deepEqual(written, []);
  statuses.set(UID, { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] });
  await clock.advance(0);
  assert.deepEqual(written.splice(0), ['Running'], 'one write for a quick start');
  await clock.advance(2_000);
  assert.deepEqual(written, [], 'and none afterwards');
  statuses.forget(UID);
  statuses.setTarget(UID, stored);
  statuses.set(UID, creating('10.0.0.2'));
  await clock.advance(600);
  assert.equal(written.length, 1, 'a slow start is reported');
  statuses.set(UID, creating('10.0.0.2', 'ErrImagePull'));
  await clock.advance(0);
  assert.equal(written.length, 2, 'a failure at once');
  statuses.stop();
});

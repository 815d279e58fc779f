import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { restartableKubelet } from '../../../src/host/node/restartable-kubelet.ts';
import type { Kubelet } from '../../../src/kubelet/index.ts';

const fakeKubelet = (port: number, actions: string[], failure?: string): Kubelet => ({
  port,
  nodeReady: new Promise(() => {}),
  isNodeReady: false,
  async start() {
    actions.push(`start ${port}`);
    if (failure !== undefined) throw new Error(failure);
  },
  stop: async ({ stopPods } = {}) => void actions.push(`stop ${port}${stopPods === true ? ' with pods' : ''}`),
  forgetBackOff: () => {},
  addressesChanged: () => {},
  reloadCertificate: async () => {},
  report: () => ({ pods: [], events: [] }),
});

test('retries until a kubelet runs, also when the configuration is invalid during the retries', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const actions: string[] = [];
    const made = [
      () => fakeKubelet(1, actions),
      () => fakeKubelet(2, actions, 'port in use'),
      () => {
        throw new Error('bad-config');
      },
      () => fakeKubelet(4, actions),
    ];
    const kubelet = await restartableKubelet(async () => made.shift()?.() ?? assert.fail('too many'), silentLog);
    await kubelet.start();
    let isDone = false;
    const restarted = kubelet.restart().finally(() => {
      isDone = true;
    });
    for (let round = 0; round < 4 && !isDone; round += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      mock.timers.tick(2_000);
    }
    await restarted;
    assert.deepEqual(actions, ['start 1', 'stop 1', 'start 2', 'stop 2', 'stop 2', 'start 4']);
    assert.equal(kubelet.port, 4);
  } finally {
    mock.timers.reset();
  }
});

/** A restart whose new kubelet cannot start, up to the wait for the next attempt. */
async function retrying(actions: string[], last: () => Kubelet) {
  const made = [() => fakeKubelet(1, actions), () => fakeKubelet(2, actions, 'port in use'), last];
  const kubelet = await restartableKubelet(async () => made.shift()?.() ?? assert.fail('too many'), silentLog);
  await kubelet.start();
  const restarted = kubelet.restart();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(actions.splice(0), ['start 1', 'stop 1', 'start 2', 'stop 2']);
  return { kubelet, restarted };
}

test('starts a kubelet at once for a stop that ends the pods during the retries', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const actions: string[] = [];
    const { kubelet, restarted } = await retrying(actions, () => fakeKubelet(3, actions));
    await kubelet.stop({ stopPods: true });
    await restarted;
    assert.deepEqual(actions, ['start 3', 'stop 3 with pods']);
  } finally {
    mock.timers.reset();
  }
});

test('ends a stop that ends the pods when no kubelet starts', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const actions: string[] = [];
    const { kubelet, restarted } = await retrying(actions, () => fakeKubelet(3, actions, 'port in use'));
    await kubelet.stop({ stopPods: true });
    await restarted;
    assert.deepEqual(actions, ['start 3', 'stop 3', 'stop 3 with pods']);
  } finally {
    mock.timers.reset();
  }
});

test('ends the retries at once when the pods keep running', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const actions: string[] = [];
    const { kubelet, restarted } = await retrying(actions, () => assert.fail('a kubelet was created'));
    await kubelet.stop();
    await restarted;
    assert.deepEqual(actions, ['stop 2']);
  } finally {
    mock.timers.reset();
  }
});

test('ends the pods with the running kubelet when a stop arrives while its replacement is created', async () => {
  const actions: string[] = [];
  const replacement = Promise.withResolvers<Kubelet>();
  const made = [Promise.resolve(fakeKubelet(1, actions)), replacement.promise];
  const kubelet = await restartableKubelet(async () => made.shift() ?? assert.fail('too many'), silentLog);
  await kubelet.start();
  const restarted = kubelet.restart();
  const stopped = kubelet.stop({ stopPods: true });
  replacement.resolve(fakeKubelet(2, actions));
  await Promise.all([restarted, stopped]);
  assert.deepEqual(actions, ['start 1', 'stop 1 with pods']);
});

test('keeps the running kubelet when the new configuration is invalid', async () => {
  const actions: string[] = [];
  let isFirst = true;
  const kubelet = await restartableKubelet(async () => {
    if (!isFirst) throw new Error('bad-config');
    isFirst = false;
    return fakeKubelet(1, actions);
  }, silentLog);
  await assert.rejects(kubelet.restart(), /bad-config/);
  assert.deepEqual(actions, []);
  assert.equal(kubelet.port, 1);
});

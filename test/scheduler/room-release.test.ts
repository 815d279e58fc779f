/** Waiting pods are retried as soon as resources are released, in whatever way a pod held them. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { PodSpec } from '../../src/api/generated/core/v1.ts';
import { resources } from '../../src/api/resources.ts';
import { DEFAULT_PROFILE } from '../../src/scheduler/core/profile.ts';
import type { ExtenderCaller } from '../../src/scheduler/extender-port.ts';
import { type ControlPlane, eventually, startControlPlane } from '../controllers/harness.ts';

const namespace = 'default';
const LAMP = 'example.com/lamp';
const SOON_MS = 30_000;
let plane: ControlPlane;
/** Bindings of pods with a lamp by an extender. Each waits until the test decides. */
const bindings: { readonly pod: string; end(error: string): void }[] = [];

before(async () => {
  const common = { urlPrefix: 'http://extender.example', weight: 1, timeoutMs: 60_000, ignorable: false };
  const extenders = [
    { ...common, tls: undefined, bindVerb: 'bind', nodeCacheCapable: false, managedResources: [LAMP] },
  ];
  const caller: ExtenderCaller = {
    post: (_extender, _verb, body) =>
      new Promise((resolve) => {
        const { PodName } = body as { readonly PodName: string };
        bindings.push({ pod: PodName, end: (error) => resolve({ Error: error }) });
      }),
    close: async () => {},
  };
  const settings = { profiles: [DEFAULT_PROFILE], extenders, initialBackoffMs: 100, maxBackoffMs: 1_000 };
  plane = await startControlPlane({ kubelets: false, scheduler: { settings, extenders: caller } });
  await plane.addNode('n1', ({ status }) => {
    for (const amounts of [status?.allocatable, status?.capacity])
      if (amounts !== undefined) Object.assign(amounts, { [LAMP]: '10' });
  });
  for (const [name, value] of [
    ['low', 1],
    ['high', 100],
  ] as const) {
    await plane.of(resources.priorityClasses).create({ metadata: { name }, value });
  }
  const patient = { metadata: { name: 'patient' }, value: 50, preemptionPolicy: 'Never' };
  await plane.of(resources.priorityClasses).create(patient);
});
after(() => plane.stop());

const pods = () => plane.of(resources.pods);
const read = (name: string) => pods().get(name, namespace);
const create = (name: string, cpu: string, priorityClassName: string, more: Partial<PodSpec> = {}, lamp = false) => {
  const amounts = { cpu, ...(lamp ? { [LAMP]: '1' } : {}) };
  return pods().create({
    metadata: { name, namespace },
    spec: {
      priorityClassName,
      terminationGracePeriodSeconds: 300,
      containers: [{ name: 'c', image: 'i', resources: { requests: amounts, limits: lamp ? { [LAMP]: '1' } : {} } }],
      ...more,
    },
  });
};
const remove = (name: string) => pods().delete(name, namespace, { gracePeriodSeconds: 0 });
const bound = (name: string) => eventually(async () => (await read(name)).spec?.nodeName, `${name} on a node`, SOON_MS);
const refused = (name: string) =>
  eventually(
    async () =>
      (await read(name)).status?.conditions?.some(
        ({ type, message }) => type === 'PodScheduled' && /Insufficient cpu/.test(message ?? ''),
      ) === true,
    `${name} refused`,
  );
const nominated = (name: string) =>
  eventually(async () => (await read(name)).status?.nominatedNodeName, `${name} nominated`);
const bindingOf = (pod: string) =>
  eventually(async () => bindings.findLast((each) => each.pod === pod), `the binding of ${pod}`);

test('frees the resources of a pod that is deleted while it is being bound', async () => {
  await create('assumed', '3', 'low', {}, true);
  const binding = await bindingOf('assumed');
  await create('waiting', '3', 'low');
  await refused('waiting');
  await remove('assumed');
  assert.equal(await bound('waiting'), 'n1');
  binding.end('too late');
  await remove('waiting');
});

test('frees the resources of a pod whose binding failed', async () => {
  await create('unbindable', '3', 'low', {}, true);
  const binding = await bindingOf('unbindable');
  // If both pods are retried at the same time, the pod with the higher priority is first.
  await create('waiting', '3', 'patient');
  await refused('waiting');
  binding.end('refused by the extender');
  assert.equal(await bound('waiting'), 'n1');
  for (const name of ['unbindable', 'waiting']) await remove(name);
  for (const { end } of bindings) end('the test has ended');
});

/** Creates a victim that stays terminating, and a pod nominated to its node. */
async function promise(name: string, finalizers: string[] = []): Promise<void> {
  await create('victim', '2', 'low');
  await bound('victim');
  const pod = await create(name, '4', 'high');
  if (finalizers.length > 0) await pods().patch(name, namespace, 'merge', { metadata: { finalizers } });
  assert.equal(await nominated(pod.metadata?.name ?? ''), 'n1');
  // The selector keeps this pod from an added node, where it could take the place of the other pod, whose back-off may
  // be longer.
  await create('waiting', '1', 'low', { nodeSelector: { 'kubernetes.io/hostname': 'n1' } });
  await refused('waiting');
}
const clean = async (...names: string[]): Promise<void> => {
  for (const name of names) await remove(name);
};

test('frees the resources nominated for a pod that is deleted', async () => {
  await promise('preemptor');
  await remove('preemptor');
  assert.equal(await bound('waiting'), 'n1');
  await clean('victim', 'waiting');
});

test('frees the resources nominated for a deleted pod that only a finalizer keeps', async () => {
  await promise('preemptor', ['example.com/keep']);
  await remove('preemptor');
  assert.equal(await bound('waiting'), 'n1');
  await pods().patch('preemptor', namespace, 'merge', { metadata: { finalizers: null } });
  await clean('victim', 'waiting');
});

test('reserves the resources of a nomination by another component until the nomination is removed', async () => {
  await create('resident', '2', 'low');
  await bound('resident');
  await create('patient', '4', 'patient');
  await refused('patient');
  const nominate = (node: string | null) =>
    pods().patch('patient', namespace, 'merge', { status: { nominatedNodeName: node } }, { subresource: 'status' });
  await nominate('n1');
  await create('waiting', '1', 'low');
  await refused('waiting');
  await nominate(null);
  assert.equal(await bound('waiting'), 'n1');
  await clean('patient', 'resident', 'waiting');
});

test('frees the resources nominated for a pod that is bound to another node', async () => {
  await promise('preemptor');
  await plane.addNode('n2');
  assert.equal(await bound('preemptor'), 'n2');
  assert.equal(await bound('waiting'), 'n1');
  await clean('preemptor', 'victim', 'waiting');
});

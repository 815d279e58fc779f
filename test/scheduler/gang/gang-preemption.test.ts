/** Preemption by pod groups: for enough members, or for none. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import type { ResourceType } from '../../../src/api/meta/object.ts';
import { resources } from '../../../src/api/resources.ts';
import { POD_GROUP_LABEL, type PodGroup } from '../../../src/scheduler/core/pod-group.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../controllers/harness.ts';

const namespace = 'default';
const POD_GROUPS: ResourceType<PodGroup> = {
  group: 'scheduling.x-k8s.io',
  version: 'v1alpha1',
  kind: 'PodGroup',
  plural: 'podgroups',
  namespaced: true,
};
let plane: ControlPlane;

before(async () => {
  plane = await startControlPlane({ kubelets: false });
  await plane.admin.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: 'podgroups.scheduling.x-k8s.io',
      annotations: { 'api-approved.kubernetes.io': 'https://github.com/kubernetes-sigs/scheduler-plugins' },
    },
    spec: {
      group: 'scheduling.x-k8s.io',
      scope: 'Namespaced',
      names: { plural: 'podgroups', singular: 'podgroup', kind: 'PodGroup' },
      versions: [
        {
          name: 'v1alpha1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        },
      ],
    },
  });
  for (const name of ['n1', 'n2', 'n3']) await plane.addNode(name);
  for (const [name, value] of [
    ['low', 1],
    ['high', 100],
  ] as const) {
    await plane.of(resources.priorityClasses).create({ metadata: { name }, value });
  }
});
after(() => plane.stop());

const pods = () => plane.of(resources.pods);
const read = (name: string) => pods().get(name, namespace);
const remove = (name: string) => pods().delete(name, namespace, { gracePeriodSeconds: 0 });
const create = (name: string, cpu: string, priorityClassName: string, group?: string): Promise<Pod> =>
  pods().create({
    metadata: { name, namespace, ...(group === undefined ? {} : { labels: { [POD_GROUP_LABEL]: group } }) },
    spec: {
      priorityClassName,
      terminationGracePeriodSeconds: 30,
      containers: [{ name: 'c', image: 'i', resources: { requests: { cpu } } }],
    },
  });
const group = (name: string, minMember: number) =>
  eventually(
    async () => plane.of(POD_GROUPS).create({ metadata: { name, namespace }, spec: { minMember } }),
    `group ${name}`,
  );
const bound = (name: string) => eventually(async () => (await read(name)).spec?.nodeName, `${name} on a node`, 20_000);
const leaving = async (names: readonly string[]): Promise<string[]> => {
  const all = await Promise.all(names.map(read));
  return names.filter((_, index) => all[index]?.metadata?.deletionTimestamp !== undefined);
};
const refused = (name: string, pattern: RegExp) =>
  eventually(
    async () => {
      const { status } = await read(name);
      return pattern.test(status?.conditions?.find(({ type }) => type === 'PodScheduled')?.message ?? '');
    },
    `${name} refused as ${pattern}`,
    20_000,
  );

test('evicts no pods if not all required members of a pod group would fit', async () => {
  for (const index of [1, 2, 3]) await create(`low-${index}`, '3', 'low');
  for (const index of [1, 2, 3]) await bound(`low-${index}`);
  await group('four', 4);
  for (const index of [1, 2, 3, 4]) await create(`four-${index}`, '3', 'high', 'four');
  await refused('four-4', /0 of 4 members of pod group "default\/four" fit: .*Insufficient cpu/);
  assert.deepEqual(await leaving(['low-1', 'low-2', 'low-3']), []);
  assert.equal((await read('four-1')).status?.nominatedNodeName, undefined);
  for (const index of [1, 2, 3, 4]) await remove(`four-${index}`);
});

test('evicts only as many pods as a pod group needs, and binds all its members', async () => {
  await remove('low-1');
  await group('three', 3);
  // One member fits on the free node; two nodes have to be freed.
  for (const index of [1, 2, 3]) await create(`three-${index}`, '3', 'high', 'three');
  await eventually(async () => (await leaving(['low-2', 'low-3'])).length === 2, 'the victims leaving', 20_000);
  const { status } = await read('low-2');
  assert.equal(status?.conditions?.find(({ type }) => type === 'DisruptionTarget')?.reason, 'PreemptionByScheduler');
  const members = ['three-1', 'three-2', 'three-3'];
  const nominations = await eventually(async () => {
    const names = (await Promise.all(members.map(read))).map((pod) => pod.status?.nominatedNodeName);
    return names.every((name) => name !== undefined) && names;
  }, 'nominations');
  assert.deepEqual(nominations.toSorted(), ['n1', 'n2', 'n3']);
  // The free node is reserved for the group while the victims terminate.
  await create('thief', '3', 'low');
  await refused('thief', /Insufficient cpu/);
  await remove('low-2');
  await refused('three-1', /2 of 3 members of pod group "default\/three" fit: .*not eligible due to a terminating pod/);
  for (const name of members) assert.equal((await read(name)).spec?.nodeName, undefined);
  assert.equal((await read('thief')).spec?.nodeName, undefined);
  await remove('low-3');
  const nodes = await Promise.all(members.map(bound));
  assert.deepEqual(nodes, nominations);
  for (const name of [...members, 'thief']) await remove(name);
});

test('members of a pod group beyond the required number wait instead of preempting', async () => {
  for (const index of [1, 2, 3]) await create(`more-${index}`, '3', 'low');
  for (const index of [1, 2, 3]) await bound(`more-${index}`);
  await group('two', 2);
  for (const index of [1, 2, 3]) await create(`two-${index}`, '3', 'high', 'two');
  const victims = ['more-1', 'more-2', 'more-3'];
  await eventually(async () => (await leaving(victims)).length === 2, 'two victims leaving', 20_000);
  const gone = await leaving(victims);
  for (const name of gone) await remove(name);
  await eventually(
    async () => {
      const placed = await Promise.all([1, 2, 3].map((index) => read(`two-${index}`)));
      return placed.filter(({ spec }) => spec?.nodeName !== undefined).length >= 2;
    },
    'two members bound',
    20_000,
  );
  const rest = victims.filter((name) => !gone.includes(name));
  assert.deepEqual(await leaving(rest), []);
});

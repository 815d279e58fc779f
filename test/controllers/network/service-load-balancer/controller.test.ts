/** Addresses of load-balancer services from a small pool, on a real API server. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { resources } from '../../../../src/api/resources.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../harness.ts';

const namespace = 'default';
let plane: ControlPlane;
before(async () => {
  plane = await startControlPlane({
    kubelets: false,
    controllers: { loadBalancerAddresses: ['192.0.2.10-192.0.2.10'] },
  });
});
after(() => plane.stop());

const services = () => plane.of(resources.services);
const create = (name: string) =>
  services().create({ metadata: { name, namespace }, spec: { type: 'LoadBalancer', ports: [{ port: 80 }] } });
const addressOf = async (name: string): Promise<string | undefined> =>
  (await services().get(name, namespace)).status?.loadBalancer?.ingress?.[0]?.ip;
const eventsOf = async (name: string): Promise<(string | undefined)[]> => {
  const { items } = await plane.of(resources.events).list({ namespace });
  return items.filter((each) => each.involvedObject?.name === name).map(({ reason }) => reason);
};

test('assigns the address of the pool, reports an exhausted pool once, and reuses a released address', async () => {
  await create('first');
  await eventually(async () => (await addressOf('first')) === '192.0.2.10', 'the first service has the address');
  await eventually(async () => (await eventsOf('first')).includes('EnsuredLoadBalancer'), 'an event of the assignment');

  await create('second');
  await eventually(
    async () => (await eventsOf('second')).includes('SyncLoadBalancerFailed'),
    'an event of the failure',
  );
  assert.equal(await addressOf('second'), undefined);

  await services().delete('first', namespace);
  await eventually(async () => (await addressOf('second')) === '192.0.2.10', 'the second service has the address');
  const failures = (await eventsOf('second')).filter((reason) => reason === 'SyncLoadBalancerFailed');
  assert.equal(failures.length, 1);
});

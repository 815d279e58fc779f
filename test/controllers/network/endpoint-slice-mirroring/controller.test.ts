import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { resources } from '../../../../src/api/resources.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../harness.ts';

let plane: ControlPlane;
before(async () => {
  plane = await startControlPlane({ kubelets: false });
});
after(() => plane.stop());

const namespace = 'default';

test('mirrors Endpoints of a service without a selector, follows changes, and deletes the slices with the Endpoints', async () => {
  const slicesOf = async (name: string): Promise<string[]> =>
    (
      await plane.of(resources.endpointSlices).list({ namespace, labelSelector: `kubernetes.io/service-name=${name}` })
    ).items
      .map((slice) => (slice.endpoints ?? []).map((each) => each.addresses.join()).join())
      .sort();
  const subsets = (...ips: string[]) => [
    { addresses: ips.map((ip) => ({ ip })), ports: [{ name: 'sql', port: 5432 }] },
  ];
  await plane.of(resources.services).create({
    metadata: { name: 'outside', namespace },
    spec: { ports: [{ name: 'sql', port: 5432 }] },
  });
  await plane
    .of(resources.endpoints)
    .create({ metadata: { name: 'outside', namespace }, subsets: subsets('192.0.2.1') });
  await eventually(async () => (await slicesOf('outside')).join() === '192.0.2.1', 'the slice');
  await plane
    .of(resources.endpoints)
    .patch('outside', namespace, 'merge', { subsets: subsets('192.0.2.1', '192.0.2.2') });
  await eventually(async () => (await slicesOf('outside')).join() === '192.0.2.1,192.0.2.2', 'the change');
  await plane.of(resources.services).delete('outside', namespace);
  await plane.of(resources.endpoints).delete('outside', namespace);
  await eventually(async () => (await slicesOf('outside')).length === 0, 'the end');
  assert.equal((await slicesOf('kubernetes')).length, 1, 'the API server publishes its own slice');
});

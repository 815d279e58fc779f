/** ServiceCIDRs and IPAddresses, with the API server's and the controllers' parts together (KEP-1880). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Service } from '../../../../src/api/generated/core/v1.ts';
import type { ServiceCidr } from '../../../../src/api/kinds/network/servicecidrs/index.ts';
import { isApiError } from '../../../../src/api/meta/status.ts';
import { resources } from '../../../../src/api/resources.ts';
import { startServer, type TestServer } from '../../../apiserver/harness.ts';
import { type ControlPlane, startControlPlane, eventually as within } from '../../harness.ts';

const namespace = 'default';
/** Long timeout, which only a failure reaches. */
const PATIENCE_MS = 30_000;
const eventually = <T>(check: () => Promise<T | undefined | false>, what: string): Promise<T> =>
  within(check, what, PATIENCE_MS);
let api: TestServer;
let plane: ControlPlane;
before(async () => {
  // This range has six addresses for services, including that of the API servers.
  api = await startServer({ config: { serviceCidr: '10.96.0.0/29' } });
  plane = await startControlPlane({ kubelets: false, api, controllers: { serviceCidrGraceMs: 50 } });
});
after(async () => {
  await plane.stop();
  await api.stop();
});

const readyOf = (range: ServiceCidr): string | undefined => {
  const ready = range.status?.conditions?.find(({ type }) => type === 'Ready');
  return ready && `${ready.status} ${ready.reason}`;
};
const ranges = () => plane.of(resources.serviceCidrs);
const becomes = (name: string, wanted: string) =>
  eventually(async () => readyOf(await ranges().get(name)) === wanted, `${name} to be ${wanted}`);
const newRange = async (name: string, cidr: string) => {
  await ranges().create({ metadata: { name }, spec: { cidrs: [cidr] } });
  await becomes(name, 'True ');
};
const newService = async (name: string, spec: object = {}): Promise<string> => {
  const service: Service = { metadata: { name, namespace }, spec: { ports: [{ port: 80 }], ...spec } };
  return (await plane.of(resources.services).create(service)).spec?.clusterIP ?? '';
};
const isGone = (read: () => Promise<unknown>) =>
  eventually(
    () =>
      read().then(
        () => false,
        (error: unknown) => isApiError(error, 'NotFound'),
      ),
    'it to be gone',
  );

test('allocates service addresses from additional ranges, which stay until they are unused', async () => {
  for (let index = 0; index < 5; index++) assert.match(await newService(`own-${index}`), /^10\.96\.0\.[2-6]$/);
  await assert.rejects(newService('too-many'), /range is full/);
  await assert.rejects(newService('elsewhere', { clusterIP: '10.97.0.5' }), /does not match the current range/);
  await newRange('more', '10.97.0.0/24');
  assert.deepEqual((await ranges().get('more')).metadata?.finalizers, ['networking.k8s.io/service-cidr-finalizer']);
  assert.match(await newService('more-1'), /^10\.97\.0\.\d+$/);
  assert.equal(await newService('more-2', { clusterIP: '10.97.0.5' }), '10.97.0.5');
  for (const unusable of ['10.97.0.0', '10.97.0.255'])
    await assert.rejects(newService('edge', { clusterIP: unusable }), /does not match the current range/);

  await ranges().delete('more');
  await becomes('more', 'False Terminating');
  await assert.rejects(newService('late'), /range is full/);
  await assert.rejects(newService('late', { clusterIP: '10.97.0.6' }), /does not match the current range/);
  await plane.of(resources.services).delete('more-1', namespace);
  await plane.of(resources.services).delete('more-2', namespace);
  await isGone(() => ranges().get('more'));
});

test('deletes a range whose addresses another range contains, although they are in use', async () => {
  await newRange('small', '10.98.0.0/28');
  const address = await newService('covered', { clusterIP: '10.98.0.3' });
  await ranges().delete('small');
  await becomes('small', 'False Terminating');
  await newRange('large', '10.98.0.0/16');
  await isGone(() => ranges().get('small'));
  assert.equal((await plane.of(resources.ipAddresses).get(address)).spec?.parentRef?.name, 'covered');
  await plane.of(resources.services).delete('covered', namespace);
  await ranges().delete('large');
  await isGone(() => ranges().get('large'));
});

test('restores a manually deleted address only while its service exists', async () => {
  const addresses = plane.of(resources.ipAddresses);
  const [made] = (await addresses.list()).items.filter(({ spec }) => spec?.parentRef?.name === 'own-0');
  const { name = '', uid } = made?.metadata ?? {};
  await addresses.delete(name);
  const again = await eventually(async () => {
    const found = await addresses.get(name).catch(() => undefined);
    return found !== undefined && found.metadata?.uid !== uid ? found : undefined;
  }, 'the address to be there again');
  assert.deepEqual(again.spec, made?.spec);
  assert.deepEqual(again.metadata?.labels, made?.metadata?.labels);
  await eventually(async () => {
    const { items } = await plane.of(resources.events).list({ namespace });
    return items.some(
      ({ reason, message, involvedObject }) =>
        reason === 'ClusterIPNotAllocated' &&
        message === `Cluster IP [IPv4]: ${name} is not allocated; repairing` &&
        involvedObject.name === 'own-0',
    );
  }, 'an event that says so');
  await plane.of(resources.services).delete('own-0', namespace);
  // This address is deleted after the first one. When it is restored, the controller has processed all earlier events.
  const [next] = (await addresses.list()).items.filter(({ spec }) => spec?.parentRef?.name === 'own-1');
  await addresses.delete(next?.metadata?.name ?? '');
  await eventually(() => addresses.get(next?.metadata?.name ?? '').catch(() => undefined), 'the other address');
  await assert.rejects(addresses.get(name), (error: unknown) => isApiError(error, 'NotFound'));
});

test('keeps the ServiceCIDR that contains the address of the service kubernetes', async () => {
  await ranges().delete('kubernetes');
  await becomes('kubernetes', 'False Terminating');
  await assert.rejects(newService('none', { clusterIP: '10.96.0.5' }), /does not match|already allocated/);
});

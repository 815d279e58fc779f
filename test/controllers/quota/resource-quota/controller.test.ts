/** Quota controller on a real API server: reports the usage, detects deletions and never admits more than the limit. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Pod, ResourceQuota } from '../../../../src/api/generated/core/v1.ts';
import type { KubeObject, ResourceType } from '../../../../src/api/meta/object.ts';
import { isApiError } from '../../../../src/api/meta/status.ts';
import { resources } from '../../../../src/api/resources.ts';
import type { ResourceClient } from '../../../../src/client/index.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../harness.ts';

const CRONTABS: ResourceType<KubeObject> = {
  group: 'stable.example.com',
  version: 'v1',
  kind: 'CronTab',
  plural: 'crontabs',
  namespaced: true,
};

describe('resource quota controller', () => {
  let plane: ControlPlane;
  let quotas: ResourceClient<ResourceQuota>;
  let pods: ResourceClient<Pod>;
  before(async () => {
    plane = await startControlPlane({ kubelets: false });
    quotas = plane.of(resources.resourceQuotas);
    pods = plane.of(resources.pods);
  });
  after(() => plane.stop());

  const newNamespace = async (name: string): Promise<void> => {
    await plane.of(resources.namespaces).create({ metadata: { name } });
    await eventually(() => plane.of(resources.serviceAccounts).get('default', name), 'a service account');
  };
  const limit = (namespace: string, hard: Record<string, string>, more: object = {}) =>
    quotas.create({ metadata: { name: 'q', namespace }, spec: { hard, ...more } });
  const says = (namespace: string, used: Record<string, string>) =>
    eventually(
      async () => {
        const { status } = await quotas.get('q', namespace);
        assert.deepEqual(status?.used, used);
        return status?.hard;
      },
      `used to be ${JSON.stringify(used)}`,
    );
  const newPod = (namespace: string, name: string, cpu = '100m') =>
    pods.create({
      metadata: { name, namespace },
      spec: { containers: [{ name: 'c', image: 'i', resources: { requests: { cpu } } }] },
    });
  const remove = (namespace: string, name: string) => pods.delete(name, namespace, { gracePeriodSeconds: 0 });

  it('the quota controller counts objects that are older than the quota, and deletions', async () => {
    await newNamespace('before');
    await newPod('before', 'a');
    await newPod('before', 'b', '200m');
    const hard = { pods: '3', 'requests.cpu': '1', secrets: '5', 'count/serviceaccounts': '5' };
    await limit('before', hard);
    const used = { pods: '2', 'requests.cpu': '300m', secrets: '0', 'count/serviceaccounts': '1' };
    assert.deepEqual(await says('before', used), hard);
    await newPod('before', 'c');
    await says('before', { ...used, pods: '3', 'requests.cpu': '400m' });
    await assert.rejects(newPod('before', 'd'), /exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3/);
    await remove('before', 'b');
    await says('before', { ...used, 'requests.cpu': '200m' });
    await pods.patch('a', 'before', 'merge', { status: { phase: 'Succeeded' } }, { subresource: 'status' });
    await says('before', { ...used, pods: '1', 'requests.cpu': '100m' });
  });

  it('the quota controller counts devices of resource claims', async () => {
    await newNamespace('devices');
    const claims = plane.of(resources.resourceClaims);
    const newClaim = (name: string, count: number) => {
      const exactly = { deviceClassName: 'gpu', allocationMode: 'ExactCount', count };
      const devices = { requests: [{ name: 'r', exactly }] };
      return claims.create({ metadata: { name, namespace: 'devices' }, spec: { devices } });
    };
    await newClaim('a', 2);
    const devices = 'gpu.deviceclass.resource.k8s.io/devices';
    await limit('devices', { [devices]: '3', 'count/resourceclaims.resource.k8s.io': '5' });
    await says('devices', { [devices]: '2', 'count/resourceclaims.resource.k8s.io': '1' });
    await newClaim('b', 1);
    await claims.delete('a', 'devices');
    await says('devices', { [devices]: '1', 'count/resourceclaims.resource.k8s.io': '1' });
    await assert.rejects(newClaim('c', 3), /exceeded quota: q/);
  });

  it('the quota controller applies changed limits, and counts kinds that are created later', async () => {
    await newNamespace('later');
    await limit('later', { 'count/crontabs.stable.example.com': '1' });
    await says('later', { 'count/crontabs.stable.example.com': '0' });
    await plane.admin.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      metadata: { name: 'crontabs.stable.example.com' },
      spec: {
        group: 'stable.example.com',
        names: { plural: 'crontabs', kind: 'CronTab' },
        scope: 'Namespaced',
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
          },
        ],
      },
    });
    const crontabs = plane.of(CRONTABS);
    const make = (name: string) =>
      crontabs.create({ apiVersion: 'stable.example.com/v1', kind: 'CronTab', metadata: { name, namespace: 'later' } });
    await eventually(() => make('a'), 'the first');
    await assert.rejects(make('b'), /crontabs\.stable\.example\.com "b" is forbidden: exceeded quota: q/);
    const hard = { 'count/crontabs.stable.example.com': '2', configmaps: '9' };
    await quotas.patch('q', 'later', 'merge', { spec: { hard } });
    // The counted config map is that of the CA, which every namespace has.
    await says('later', { 'count/crontabs.stable.example.com': '1', configmaps: '1' });
    await make('b');
    await crontabs.delete('a', 'later');
    await says('later', { 'count/crontabs.stable.example.com': '1', configmaps: '1' });
  });

  it('resource quota controller never exceeds the limit while 16 clients create and delete', async () => {
    const namespace = 'churning';
    const most = 8;
    await newNamespace(namespace);
    await limit(namespace, { pods: String(most) });
    await says(namespace, { pods: '0' });
    let made = 0;
    const churn = async (creator: number): Promise<void> => {
      // The quota of deleted objects must become available again; otherwise this loop never ends.
      for (let n = 0; made < 3 * most; n++) {
        const name = `p-${creator}-${n}`;
        try {
          await newPod(namespace, name);
          made++;
          const { items } = await pods.list({ namespace });
          assert.ok(items.length <= most, `${items.length} pods`);
          await remove(namespace, name);
        } catch (error) {
          assert.ok(isApiError(error, 'Forbidden'), String(error));
          assert.match(error.message, /exceeded quota: q/);
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      }
    };
    await Promise.all(Array.from({ length: 16 }, (_, creator) => churn(creator)));
    await says(namespace, { pods: '0' });
  });
});

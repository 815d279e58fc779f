/** Controllers of the OpenShift layer on a real API server. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Secret, ServiceAccount } from '../../src/api/generated/core/v1.ts';
import { isApiError } from '../../src/api/meta/status.ts';
import { resources } from '../../src/api/resources.ts';
import { type ControlPlane, eventually, startControlPlane } from '../controllers/harness.ts';

const QUOTAS = '/apis/quota.openshift.io/v1/clusterresourcequotas';

describe("OpenShift's controllers", () => {
  let plane: ControlPlane;
  before(async () => {
    plane = await startControlPlane({ kubelets: false, controllers: { accountSecrets: true } });
  });
  after(() => plane.stop());

  it('creates a token and registry credentials for a service account, lists them in its secrets and deletes them', async () => {
    await plane.of(resources.namespaces).create({ metadata: { name: 'accounts' } });
    const secrets = plane.of(resources.secrets);
    const listed = await eventually(async () => {
      const account: ServiceAccount = await plane.of(resources.serviceAccounts).get('default', 'accounts');
      assert.equal(account.secrets?.length, 2);
      return account.secrets ?? [];
    }, 'two secrets');
    const found: Secret[] = [];
    for (const { name = '' } of listed) found.push(await secrets.get(name, 'accounts'));
    assert.deepEqual(found.map(({ type }) => type).sort(), [
      'kubernetes.io/dockercfg',
      'kubernetes.io/service-account-token',
    ]);
    const token = found.find(({ type }) => type === 'kubernetes.io/service-account-token')?.metadata?.name ?? '';
    await eventually(async () => {
      const { data } = await secrets.get(token, 'accounts');
      return data?.['token'];
    }, 'a token');
    // A deleted token is replaced.
    await secrets.delete(token, 'accounts');
    await eventually(async () => {
      assert.ok((await secrets.get(token, 'accounts')).data?.['token']);
      const { secrets: names = [] } = await plane.of(resources.serviceAccounts).get('default', 'accounts');
      assert.equal(names.length, 2);
      return true;
    }, 'another token');
  });

  it('reports the resource usage of the projects of a ClusterResourceQuota', async () => {
    for (const name of ['one', 'two'])
      await plane.of(resources.namespaces).create({ metadata: { name, labels: { team: 'blue' } } });
    await plane.admin.request('POST', QUOTAS, {
      apiVersion: 'quota.openshift.io/v1',
      kind: 'ClusterResourceQuota',
      metadata: { name: 'blue' },
      spec: {
        selector: { labels: { matchLabels: { team: 'blue' } } },
        quota: { hard: { services: '4', 'count/limitranges': '9' } },
      },
    });
    for (const namespace of ['one', 'two'])
      await plane
        .of(resources.services)
        .create({ metadata: { name: 's', namespace }, spec: { ports: [{ port: 80 }] } });
    await eventually(async () => {
      const { status } = await plane.admin.request<{ status: { total: { used: object }; namespaces: object[] } }>(
        'GET',
        `${QUOTAS}/blue`,
      );
      assert.deepEqual(status.total.used, { 'count/limitranges': '0', services: '2' });
      assert.equal(status.namespaces.length, 2);
      return true;
    }, 'totals');
  });

  it('deletes the content of a deleted project although its role bindings are served by two API groups', async () => {
    await plane.admin.request('POST', '/apis/project.openshift.io/v1/projectrequests', {
      apiVersion: 'project.openshift.io/v1',
      kind: 'ProjectRequest',
      metadata: { name: 'gone' },
    });
    await plane.admin.request('DELETE', '/apis/project.openshift.io/v1/projects/gone');
    await eventually(async () => {
      const error = await plane
        .of(resources.namespaces)
        .get('gone')
        .then(
          () => undefined,
          (reason: unknown) => reason,
        );
      assert.ok(isApiError(error, 'NotFound'));
      return true;
    }, 'the project to go');
  });
});

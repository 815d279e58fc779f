/** Requests of common `oc` commands on a real API server with its controllers. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { resources } from '../../src/api/resources.ts';
import { type ControlPlane, eventually, startControlPlane } from './harness.ts';

describe('common oc commands', () => {
  let plane: ControlPlane;
  before(async () => {
    plane = await startControlPlane({ router: true });
  });
  after(() => plane.stop());

  it('oc create identity lets the server generate the name', async () => {
    const made = await plane.admin.request<{ metadata: { name: string } }>(
      'POST',
      '/apis/user.openshift.io/v1/identities',
      {
        kind: 'Identity',
        apiVersion: 'user.openshift.io/v1',
        metadata: {},
        providerName: 'htpasswd',
        providerUserName: 'ann',
        user: {},
      },
    );
    assert.equal(made.metadata.name, 'htpasswd:ann');
    await assert.rejects(
      plane.admin.request('POST', '/apis/user.openshift.io/v1/identities', { metadata: {}, providerName: 'x' }),
      /providerUserName|name or generateName/,
    );
  });

  it('oc whoami --show-console finds the URL of an enabled console', async () => {
    const url = async () =>
      (await plane.of(resources.configMaps).get('console-public', 'openshift-config-managed')).data?.['consoleURL'];
    assert.equal(await url(), undefined);
    await plane.of(resources.namespaces).create({ metadata: { name: 'openshift-console' } });
    const host = 'console-openshift-console.apps.lab.example';
    await plane.of(resources.routes).create({
      metadata: { name: 'console', namespace: 'openshift-console' },
      spec: { host, to: { kind: 'Service', name: 'console' } },
    });
    await eventually(async () => (await url()) === `https://${host}`, 'the URL');
    await plane.of(resources.routes).delete('console', 'openshift-console');
    await eventually(async () => (await url()) === undefined, 'no URL');
  });

  it('access reviews with an empty API group match the permissions of users', async () => {
    const review = (group: string) =>
      plane.admin.request<{ status: { allowed: boolean } }>(
        'POST',
        '/apis/authorization.k8s.io/v1/subjectaccessreviews',
        {
          spec: {
            user: 'ann',
            groups: ['system:authenticated', 'system:authenticated:oauth'],
            resourceAttributes: { verb: 'list', group, resource: 'projects' },
          },
        },
      );
    for (const group of ['', 'project.openshift.io']) assert.equal((await review(group)).status.allowed, true, group);
  });
});

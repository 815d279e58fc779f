/** Admission of hosts and certificates of routes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Mutation } from '../../../../src/apiserver/admission/admission.ts';
import { routeHosts } from '../../../../src/apiserver/admission/network/route-hosts.ts';
import type { AdmissionRequest } from '../../../../src/apiserver/pipeline/admission.ts';
import type { Route } from '../../../../src/network/router/kinds/routes/types.ts';

/** `verbs`: verbs that the user may use on routes/custom-host. */
async function admitted(route: Route, verbs: readonly string[], old?: Route): Promise<Route> {
  const plugin = routeHosts(
    {
      authorize: (_user, action) => ({
        allowed: 'subresource' in action && action.subresource === 'custom-host' && verbs.includes(action.verb),
        reason: '',
      }),
    },
    'apps.lab',
  );
  const request = {
    operation: old === undefined ? 'CREATE' : 'UPDATE',
    kind: { plural: 'routes', definition: { group: 'route.openshift.io', kind: 'Route' } },
    subresource: '',
    namespace: 'shop',
    name: 'web',
    user: { name: 'dev', groups: [] },
    object: route,
    old,
    dryRun: false,
    warnings: [],
  } as unknown as AdmissionRequest;
  await plugin.mutate?.(request, new Mutation());
  await plugin.validate?.(request);
  return route;
}

const web = (spec: Route['spec'] = {}): Route => ({ metadata: { name: 'web', namespace: 'shop' }, spec });

test('a route without a host gets a host in the domain of the cluster', async () => {
  const route = await admitted(web(), []);
  assert.equal(route.spec?.host, 'web-shop.apps.lab');
  assert.equal(route.metadata?.annotations?.['openshift.io/host.generated'], 'true');
  assert.equal((await admitted(web({ subdomain: 'www' }), ['create'])).spec?.host, 'www.apps.lab');
});

test('reserves hosts of the cluster for namespaces openshift-*, including generated and changed hosts', async () => {
  const reserved = /spec.host: Forbidden: .* is reserved for namespaces openshift-\*/;
  const host = 'console-openshift-console.apps.lab';
  await assert.rejects(admitted(web({ host }), ['create']), reserved);
  await assert.rejects(admitted(web({ subdomain: 'oauth-openshift' }), ['create']), reserved);
  await assert.rejects(admitted(web({ host }), ['create', 'update'], web({ host: 'a.test' })), reserved);
  await assert.rejects(admitted(web({ host: '192.0.2.1' }), ['create']), /is an address/);
  assert.equal((await admitted(web({ host, path: '/x' }), [], web({ host }))).spec?.path, '/x');
});

test('setting a host or certificate requires routes/custom-host', async () => {
  const own = await admitted(web({ host: 'own.test' }), ['create']);
  assert.equal(own.spec?.host, 'own.test');
  assert.equal(own.metadata?.annotations, undefined);
  await assert.rejects(admitted(web({ host: 'own.test' }), []), /do not have permission to set the host field/);
  await assert.rejects(
    admitted(web({ tls: { termination: 'edge', key: 'k' } }), []),
    /do not have permission to set certificate fields/,
  );
});

test('changing a host requires update, changing a certificate requires create', async () => {
  const old = web({ host: 'a.test', tls: { key: 'old' } });
  await assert.rejects(admitted(web({ host: 'b.test', tls: { key: 'old' } }), ['create'], old), /field is immutable/);
  await admitted(web({ host: 'b.test', tls: { key: 'old' } }), ['update'], old);
  await admitted(web({ host: 'a.test', tls: { key: 'new' } }), ['create'], old);
  await assert.rejects(admitted(web({ host: 'a.test', tls: { key: 'new' } }), [], old), /update certificate fields/);
  await admitted(web({ host: 'a.test', path: '/x', tls: { key: 'old' } }), [], old);
});

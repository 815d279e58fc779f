/** Assignment of hosts to namespaces: the first claim wins, and names of the cluster are reserved. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Ingress } from '../../../../src/api/generated/networking/v1.ts';
import type { KubeObject } from '../../../../src/api/meta/object.ts';
import { Mutation } from '../../../../src/apiserver/admission/admission.ts';
import { hostClaims } from '../../../../src/apiserver/admission/network/host-claims.ts';
import type { AdmissionRequest } from '../../../../src/apiserver/pipeline/admission.ts';
import {
  type Gateway,
  HOST_CLAIMS,
  type HttpRoute,
  planRouting,
  type RoutingInput,
} from '../../../../src/network/router/core/index.ts';
import type { Route } from '../../../../src/network/router/kinds/routes/types.ts';

const ROUTES = { group: 'route.openshift.io', kind: 'Route', plural: 'routes' };
const INGRESSES = { group: 'networking.k8s.io', kind: 'Ingress', plural: 'ingresses' };
const HTTP_ROUTES = { group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', plural: 'httproutes' };
const GATEWAYS = { group: 'gateway.networking.k8s.io', kind: 'Gateway', plural: 'gateways' };

/** Returns the object as admission stores it after an update of `old` at `time`. */
async function updated<T extends object>(kind: typeof ROUTES, old: T, object: T, time: string): Promise<T> {
  const next = structuredClone(object);
  const request = {
    operation: 'UPDATE',
    kind: { plural: kind.plural, definition: kind },
    subresource: '',
    namespace: 'a',
    name: 'x',
    user: { name: 'dev', groups: [] },
    object: next as KubeObject,
    old: old as KubeObject,
    dryRun: false,
    warnings: [],
  } as unknown as AdmissionRequest;
  await hostClaims(() => Date.parse(time)).mutate?.(request, new Mutation());
  return next;
}

const plan = (given: Partial<RoutingInput>) =>
  planRouting({
    routes: [],
    ingresses: [],
    ingressClasses: [{ metadata: { name: 'hyperedge' }, spec: { controller: 'hyperedge.dev/router' } }],
    httpRoutes: [],
    gateways: [],
    permits: () => false,
    service: () => undefined,
    slices: () => [],
    certificate: () => undefined,
    check: () => undefined,
    ports: { http: 80, https: 443 },
    policy: { domain: 'apps.lab', wildcardRoutes: false },
    ...given,
  });

const meta = (name: string, namespace: string, day: number) => ({
  name,
  namespace,
  creationTimestamp: `2026-01-0${day}T00:00:00Z`,
});
const ingress = (namespace: string, day: number, host: string, spec: Ingress['spec'] = {}): Ingress => ({
  metadata: meta('x', namespace, day),
  spec: {
    ingressClassName: 'hyperedge',
    rules: [
      {
        ...(host === '' ? {} : { host }),
        http: { paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: namespace } } }] },
      },
    ],
    ...spec,
  },
});
const route = (namespace: string, day: number, host: string, spec: Route['spec'] = {}): Route => ({
  metadata: meta('x', namespace, day),
  spec: { host, wildcardPolicy: 'None', to: { kind: 'Service', name: namespace }, ...spec },
});
const httpRoute = (namespace: string, day: number, hostnames: string[], gateway = 'g'): HttpRoute =>
  ({
    metadata: meta('x', namespace, day),
    spec: { parentRefs: [{ name: gateway }], hostnames, rules: [{ backendRefs: [{ name: namespace, port: 80 }] }] },
  }) as HttpRoute;
const gateway = (namespace: string, day: number, listener: object = {}): Gateway => ({
  metadata: meta('g', namespace, day),
  spec: { gatewayClassName: 'hyperedge', listeners: [{ name: 'http', port: 80, protocol: 'HTTP', ...listener }] },
});

const NOON = '2026-01-05T12:00:00Z';
/** Namespace that serves a request, if any. */
function served({ table }: ReturnType<typeof plan>, host: string, path = '/', secure = false): string | undefined {
  const found = table.request({ host, path, query: '', method: 'GET', secure, header: () => undefined });
  return found.kind === 'backend' ? found.backend.namespace : undefined;
}

test('an old Ingress that adds a host later does not take the host from a route that claimed it earlier', async () => {
  const victim = route('victim', 3, 'shop.test');
  const old = ingress('thief', 1, 'mine.test');
  for (const host of ['shop.test', 'SHOP.test']) {
    const next = await updated(INGRESSES, old, ingress('thief', 1, host), NOON);
    const found = plan({ routes: [victim], ingresses: [next] });
    assert.equal(served(found, 'shop.test'), 'victim');
    assert.match(found.refused.get('ingress/thief/x') ?? '', /holds/);
    assert.equal(found.rejected.size, 0);
  }
  // A wildcard that is added later does not get names that another namespace owns.
  const wild = await updated(INGRESSES, old, ingress('thief', 1, '*.test'), NOON);
  assert.equal(served(plan({ routes: [victim], ingresses: [wild] }), 'shop.test'), 'victim');
});

test('a change of class, parent or listener renews the time at which an object claimed its hosts', async () => {
  const victim = route('victim', 3, 'shop.test');
  const waiting = ingress('thief', 1, 'shop.test', { ingressClassName: 'other' });
  const switched = await updated(INGRESSES, waiting, ingress('thief', 1, 'shop.test'), NOON);
  assert.equal(served(plan({ routes: [victim], ingresses: [switched] }), 'shop.test'), 'victim');

  const unattached = httpRoute('thief', 1, ['shop.test'], 'none');
  const attached = await updated(HTTP_ROUTES, unattached, httpRoute('thief', 1, ['shop.test']), NOON);
  const found = plan({ routes: [victim], gateways: [gateway('thief', 1)], httpRoutes: [attached] });
  assert.equal(served(found, 'shop.test'), 'victim');

  const renamed = await updated(
    HTTP_ROUTES,
    httpRoute('thief', 1, ['a.test']),
    httpRoute('thief', 1, ['shop.test']),
    NOON,
  );
  const byName = plan({ routes: [victim], gateways: [gateway('thief', 1)], httpRoutes: [renamed] });
  assert.equal(served(byName, 'shop.test'), 'victim');

  const open = gateway('thief', 1, { hostname: 'a.test' });
  const moved = await updated(GATEWAYS, open, gateway('thief', 1, { hostname: 'shop.test' }), NOON);
  const byListener = plan({ routes: [victim], gateways: [moved], httpRoutes: [httpRoute('thief', 1, [])] });
  assert.equal(served(byListener, 'shop.test'), 'victim');
  const late = plan({
    routes: [victim],
    gateways: [gateway('thief', 4)],
    httpRoutes: [httpRoute('thief', 1, ['shop.test'])],
  });
  assert.equal(served(late, 'shop.test'), 'victim');
});

test('keeps the claim time of a host over unrelated updates, and rejects claim times set by users', async () => {
  const old = ingress('a', 1, 'a.test');
  const added = await updated(
    INGRESSES,
    old,
    { ...old, spec: { ...old.spec, rules: [{ host: 'a.test' }, { host: 'b.test' }] } },
    NOON,
  );
  assert.deepEqual(JSON.parse(added.metadata?.annotations?.[HOST_CLAIMS] ?? ''), { 'host:b.test': NOON });
  const forged = structuredClone(added);
  forged.metadata = {
    ...forged.metadata,
    annotations: { [HOST_CLAIMS]: '{"host:b.test":"2000-01-01T00:00:00Z"}', own: 'x' },
  };
  const kept = await updated(INGRESSES, added, forged, '2026-01-09T00:00:00Z');
  assert.deepEqual(kept.metadata?.annotations, { [HOST_CLAIMS]: `{"host:b.test":"${NOON}"}`, own: 'x' });
  const removed = await updated(INGRESSES, added, { ...added, metadata: meta('x', 'a', 1) }, '2026-01-09T00:00:00Z');
  assert.deepEqual(removed.metadata?.annotations, { [HOST_CLAIMS]: `{"host:b.test":"${NOON}"}` });
  // A claim without a record is as old as the object, and wins.
  const rival = route('b', 2, 'a.test');
  const both = { ...kept, spec: { ...kept.spec, rules: ingress('a', 1, 'a.test').spec?.rules ?? [] } };
  assert.equal(plan({ routes: [rival], ingresses: [both] }).rejected.get('route/b/x')?.reason, 'HostAlreadyClaimed');
});

test('a catch-all Ingress serves neither unclaimed paths nor plain HTTP of a claimed host', () => {
  const paths = route('victim', 3, 'shop.test', { path: '/api' });
  const secure = route('victim', 3, 'safe.test', { tls: { termination: 'edge' } });
  const invalid = route('victim', 3, 'broken.test', { tls: { termination: 'edge', certificate: 'x', key: 'y' } });
  const catchAll = ingress('thief', 1, '', { defaultBackend: { service: { name: 'thief' } } });
  const wild = ingress('other', 1, '*.below.test');
  const found = plan({
    routes: [
      { ...paths, metadata: meta('p', 'victim', 3) },
      { ...secure, metadata: meta('s', 'victim', 3) },
      { ...invalid, metadata: meta('i', 'victim', 3) },
    ],
    ingresses: [catchAll, wild],
    check: (tls) => (tls.certificate === undefined ? undefined : 'bad certificate'),
  });
  assert.equal(served(found, 'shop.test', '/api'), 'victim');
  assert.equal(served(found, 'shop.test', '/login'), undefined);
  assert.equal(served(found, 'safe.test', '/', true), 'victim');
  assert.equal(served(found, 'safe.test', '/'), undefined);
  assert.equal(served(found, 'broken.test', '/'), undefined);
  assert.equal(served(found, 'a.below.test', '/'), 'other');
  assert.equal(served(found, 'free.test', '/'), 'thief');
});

test('rejects routes for host names of the console, OAuth and the apps domain itself', () => {
  const names = [
    'console-openshift-console.apps.lab',
    'oauth-openshift.apps.lab',
    'downloads-openshift-console.apps.lab',
    'master-0',
  ];
  const policy = { domain: 'apps.lab', wildcardRoutes: true, names: ['master-0'] };
  for (const host of names) {
    const found = plan({ policy, routes: [route('thief', 1, host)], ingresses: [ingress('other', 1, '')] });
    assert.equal(found.rejected.get('route/thief/x')?.reason, 'HostAlreadyClaimed', host);
    assert.equal(served(found, host), undefined, 'not even a catch-all');
    const others = plan({
      policy,
      ingresses: [ingress('thief', 1, host)],
      gateways: [gateway('thief', 1)],
      httpRoutes: [httpRoute('thief', 1, [host.toUpperCase()])],
    });
    assert.equal(served(others, host), undefined);
    assert.deepEqual([...others.refused.keys()].sort(), ['httproute/thief/x', 'ingress/thief/x']);
    assert.equal(served(plan({ policy, routes: [route('openshift-console', 2, host)] }), host), 'openshift-console');
  }
  const wild = plan({
    policy,
    ingresses: [ingress('thief', 1, '*.apps.lab')],
    routes: [route('b', 2, 'web-b.apps.lab')],
  });
  assert.equal(served(wild, 'web-b.apps.lab'), 'b');
  assert.equal(served(wild, 'free.apps.lab'), undefined);
  const above = plan({ policy, gateways: [gateway('thief', 1)], httpRoutes: [httpRoute('thief', 1, ['*.lab'])] });
  assert.equal(served(above, 'free.apps.lab'), undefined);
  assert.match(
    plan({ policy, routes: [route('thief', 1, '192.0.2.1')] }).rejected.get('route/thief/x')?.message ?? '',
    /is an address/,
  );
});

test('rejects routes with wildcardPolicy Subdomain unless the cluster allows them', () => {
  const wild = route('a', 1, 'www.w.test', { wildcardPolicy: 'Subdomain' });
  const denied = plan({ routes: [wild] });
  assert.deepEqual(denied.rejected.get('route/a/x'), {
    reason: 'RouteNotAdmitted',
    message: 'wildcard routes are not allowed; set openshift.wildcardRoutes',
  });
  assert.equal(served(denied, 'b.w.test'), undefined);
  const allowed = plan({ routes: [wild], policy: { domain: 'apps.lab', wildcardRoutes: true } });
  assert.equal(served(allowed, 'b.w.test'), 'a');
});

test('plans an Ingress with thousands of hosts, claim times and TLS hosts quickly', () => {
  const hosts = Array.from({ length: 3000 }, (_, index) => `h${index}.x.lab`);
  const backend = { service: { name: 'web', port: { number: 80 } } };
  const rules = hosts.map((host) => ({ host, http: { paths: [{ path: '/', pathType: 'Prefix' as const, backend }] } }));
  const tls = [
    { hosts: Array.from({ length: 20_000 }, (_, index) => `other${index}.lab`), secretName: 'first' },
    { hosts: ['h1.x.lab'], secretName: 'second' },
    { hosts: ['h1.x.lab', 'h2.x.lab'], secretName: 'third' },
  ];
  const claimed = Object.fromEntries(hosts.map((host) => [`host:${host}`, '2026-01-05T00:00:00Z']));
  const big = ingress('a', 1, '', { rules, tls });
  big.metadata = { ...big.metadata, annotations: { [HOST_CLAIMS]: JSON.stringify(claimed) } };
  const rival = ingress('b', 2, 'h7.x.lab');
  const start = performance.now();
  let read = 0;
  const { table, refused } = plan({
    ingresses: [big, rival],
    certificate: (_, secret) => ({ certificate: secret, key: '' }),
    slices: () => {
      read += 1;
      return [];
    },
  });
  // An implementation that parses the record of all claims for each host takes 14 seconds.
  assert.ok(performance.now() - start < 5000, `${performance.now() - start} ms`);
  assert.ok(read < 10, `slices read ${read} times`);
  assert.deepEqual([...refused.keys()], ['ingress/a/x']);
  const certificateOf = (host: string) => table.rows.find((row) => row.host === host)?.certificate?.certificate;
  assert.deepEqual(['h1.x.lab', 'h2.x.lab', 'h3.x.lab'].map(certificateOf), ['second', 'third', undefined]);
});

/** Compares the routing table with a simple oracle, and tests the ownership of hosts. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Ingress } from '../../../../src/api/generated/networking/v1.ts';
import {
  Balancer,
  type CertificateCheck,
  certificateProblem,
  type Gateway,
  gatewayStatus,
  type HttpRoute,
  permitsOf,
  planRouteStatus,
  planRouting,
  printedRoutes,
  type RoutingInput,
  secretsOfGateway,
  unpermittedBackend,
} from '../../../../src/network/router/core/index.ts';
import type { Found, RequestFacts } from '../../../../src/network/router/core/port.ts';
import type { Route } from '../../../../src/network/router/kinds/routes/types.ts';
import { generator } from '../../../support/random.ts';

const slice = (address: string, port = 8080) => ({
  addressType: 'IPv4',
  metadata: {},
  ports: [{ name: '', port, protocol: 'TCP' }],
  endpoints: [{ addresses: [address] }],
});

const input = (given: Partial<RoutingInput>): RoutingInput => ({
  routes: [],
  ingresses: [],
  ingressClasses: [{ metadata: { name: 'hyperedge' }, spec: { controller: 'hyperedge.dev/router' } }],
  httpRoutes: [],
  gateways: [],
  permits: () => false,
  service: () => ({ spec: { ports: [{ port: 80 }] } }),
  slices: () => [slice('10.0.0.1')],
  certificate: () => undefined,
  check: () => undefined,
  ports: { http: 80, https: 443 },
  policy: { domain: 'apps.lab', wildcardRoutes: true },
  ...given,
});

let minute = 0;
const route = (name: string, host: string, spec: NonNullable<Route['spec']> = {}, namespace = 'a'): Route => ({
  metadata: {
    name,
    namespace,
    creationTimestamp: `2026-01-01T00:${String(minute++ % 60).padStart(2, '0')}:00Z`,
  },
  spec: { host, wildcardPolicy: 'None', to: { kind: 'Service', name: 'web', weight: 100 }, ...spec },
});

const facts = (host: string, path: string, more: Partial<RequestFacts> = {}): RequestFacts => ({
  secure: false,
  host,
  path,
  query: '',
  method: 'GET',
  header: () => undefined,
  ...more,
});
const idOf = (found: Found): string => (found.kind === 'backend' ? found.backend.id : found.kind);

test('the routing table finds the same route as a scan of all routes', () => {
  const random = generator(11);
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  const hosts = ['a.test', 'b.test', 'x.b.test', 'c.x.b.test'];
  const paths = ['', '/', '/a', '/a/b', '/ab', '/a/', '/a/b/c'];
  for (let round = 0; round < 300; round++) {
    minute = 0;
    const routes = Array.from({ length: 8 }, (_, at) => {
      const wildcardPolicy = random() < 0.3 ? 'Subdomain' : 'None';
      return route(`r${at}`, pick(hosts), { path: pick(paths), wildcardPolicy });
    });
    const { table, rejected } = planRouting(input({ routes }));
    const admitted = routes.filter(({ metadata }) => !rejected.has(`route/a/${metadata?.name}`));
    for (let requested = 0; requested < 20; requested++) {
      const [host, path] = [pick([...hosts, 'y.b.test', 'z.test']), pick(['/', '/a', '/a/', '/a/b', '/ab', '/a/bc'])];
      assert.equal(idOf(table.request(facts(host, path))), oracle(admitted, host, path), `${host}${path}`);
    }
  }
});

/** Prefers an exact host over a wildcard, then the longest path. */
function oracle(routes: readonly Route[], host: string, path: string): string {
  const matches = routes.filter(({ spec }) => {
    const own = spec?.host ?? '';
    const suffix = own.slice(own.indexOf('.'));
    const isHost =
      spec?.wildcardPolicy === 'Subdomain'
        ? host.endsWith(suffix) && !host.slice(0, -suffix.length).includes('.') && host.length > suffix.length
        : host === own;
    const prefix = spec?.path ?? '';
    const base = prefix.replace(/\/$/, '');
    const isPath =
      base === '' || path.startsWith(`${base}/`) || (path === base && !(prefix.endsWith('/') && prefix !== base));
    return isHost && isPath;
  });
  const rank = ({ spec }: Route): number =>
    (spec?.wildcardPolicy === 'Subdomain' ? 0 : 1000) + (spec?.path ?? '').length;
  const [best] = matches.sort((left, right) => rank(right) - rank(left));
  return best === undefined ? 'none' : `route/a/${best.metadata?.name}`;
}

test('admits the oldest route of a host, and other routes of the same namespace with different paths', () => {
  minute = 0;
  const routes = [
    route('first', 'w.test', { path: '/a' }),
    route('same', 'w.test', { path: '/b' }),
    route('again', 'w.test', { path: '/a' }),
    route('thief', 'w.test', { path: '/c' }, 'b'),
    route('none', ''),
    route('bad', 'under_score.test'),
    route('wild', 'www.d.test', { wildcardPolicy: 'Subdomain' }),
    route('below', 'x.d.test', {}, 'b'),
  ];
  const { rejected, table } = planRouting(input({ routes }));
  const reasons = Object.fromEntries([...rejected].map(([id, { reason }]) => [id, reason]));
  assert.deepEqual(reasons, {
    'route/a/again': 'HostAlreadyClaimed',
    'route/b/thief': 'HostAlreadyClaimed',
    'route/a/none': 'NoHostValue',
    'route/a/bad': 'InvalidHost',
    'route/b/below': 'HostAlreadyClaimed',
  });
  assert.equal(idOf(table.request(facts('x.d.test', '/'))), 'route/a/wild');
  // The claim of a host ends when its route is deleted.
  assert.equal(planRouting(input({ routes: routes.slice(3) })).rejected.has('route/b/thief'), false);
});

test('rejects a route with line breaks or invalid values in annotations, and admits the others', () => {
  const values = {
    'haproxy.router.openshift.io/hsts_header': 'max-age=1\r\nX-Evil: 1',
    'haproxy.router.openshift.io/rewrite-target': '/a\n/b',
    'haproxy.router.openshift.io/timeout': 'soon',
    'haproxy.router.openshift.io/ip_whitelist': '10.0.0.0/33',
    'haproxy.router.openshift.io/balance': 'best',
    'router.openshift.io/cookie_name': 'a;b',
  };
  for (const [key, value] of Object.entries(values)) {
    const bad = route('bad', 'bad.test');
    const { rejected, table } = planRouting(
      input({
        routes: [{ ...bad, metadata: { ...bad.metadata, annotations: { [key]: value } } }, route('ok', 'ok.test')],
      }),
    );
    assert.equal(rejected.get('route/a/bad')?.reason, 'ExtendedValidationFailed', key);
    assert.match(rejected.get('route/a/bad')?.message ?? '', new RegExp(key.replaceAll('.', '\\.')));
    assert.equal(idOf(table.request(facts('ok.test', '/'))), 'route/a/ok');
  }
});

test('routes passthrough TLS by server name, applies the insecure policy, and rewrites paths by annotation', () => {
  const edge = (policy: string) => ({ termination: 'edge', insecureEdgeTerminationPolicy: policy });
  const rewriting = route('rewrite', 'r.test', { path: '/foo' });
  const annotations = { 'haproxy.router.openshift.io/rewrite-target': '/bar' };
  const { table } = planRouting(
    input({
      routes: [
        route('pass', 'p.test', { tls: { termination: 'passthrough' } }),
        route('redirect', 'e.test', { tls: edge('Redirect') }),
        route('none', 'n.test', { tls: edge('None') }),
        { ...rewriting, metadata: { ...rewriting.metadata, annotations } },
      ],
    }),
  );
  assert.equal(table.tls('p.test').kind, 'passthrough');
  assert.equal(table.tls('e.test').kind, 'terminate');
  assert.deepEqual(table.request(facts('e.test', '/x', { query: '?y' })), {
    kind: 'redirect',
    status: 302,
    location: 'https://e.test/x?y',
  });
  assert.equal(idOf(table.request(facts('n.test', '/'))), 'none');
  assert.equal(idOf(table.request(facts('p.test', '/', { secure: true }))), 'misdirected');
  for (const [path, wanted] of [
    ['/foo', '/bar'],
    ['/foo/', '/bar/'],
    ['/foo/x', '/bar/x'],
  ] as const) {
    const found = table.request(facts('r.test', path, { query: '?q' }));
    assert.equal(found.kind === 'backend' ? found.path : '', `${wanted}?q`);
  }
});

test('supports path types, wildcards and default back ends of Ingresses, and headers and redirects of HTTPRoutes', () => {
  const backend = (name: string) => ({ service: { name, port: { number: 80 } } });
  const ingress: Ingress = {
    metadata: { name: 'i', namespace: 'a', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: {
      ingressClassName: 'hyperedge',
      defaultBackend: backend('fallback'),
      rules: [
        { host: 'i.test', http: { paths: [{ path: '/e', pathType: 'Exact', backend: backend('exact') }] } },
        { host: '*.w.test', http: { paths: [{ path: '/p/', pathType: 'Prefix', backend: backend('prefix') }] } },
      ],
    },
  };
  const gateway: Gateway = {
    metadata: { name: 'g', namespace: 'a' },
    spec: { gatewayClassName: 'hyperedge', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
  };
  const httpRoute = (name: string, rules: object[], namespace = 'a'): HttpRoute =>
    ({
      metadata: { name, namespace, creationTimestamp: '2026-01-02T00:00:00Z' },
      spec: { parentRefs: [{ name: 'g', namespace: 'a' }], hostnames: [`${name}.test`], rules },
    }) as HttpRoute;
  const redirect = { type: 'RequestRedirect', requestRedirect: { scheme: 'https', statusCode: 301 } };
  const { table } = planRouting(
    input({
      ingresses: [ingress],
      gateways: [gateway],
      httpRoutes: [
        httpRoute('h', [
          { matches: [{ headers: [{ name: 'X-Canary', value: 'yes' }] }], backendRefs: [{ name: 'canary', port: 80 }] },
          { backendRefs: [{ name: 'stable', port: 80 }] },
        ]),
        httpRoute('r', [{ filters: [redirect] }]),
        httpRoute('foreign', [{ backendRefs: [{ name: 'stable', port: 80 }] }], 'b'),
      ],
    }),
  );
  const service = (host: string, path: string, more: Partial<RequestFacts> = {}): string | undefined => {
    const found = table.request(facts(host, path, more));
    return found.kind === 'backend' ? found.backend.pools[0]?.service : found.kind;
  };
  assert.equal(service('i.test', '/e'), 'a/exact');
  assert.equal(service('i.test', '/e/x'), 'a/fallback');
  assert.equal(service('x.w.test', '/p'), 'a/prefix');
  assert.equal(service('y.x.w.test', '/p'), 'a/fallback');
  assert.equal(service('nowhere.test', '/'), 'a/fallback');
  assert.equal(service('h.test', '/', { header: (name) => (name === 'x-canary' ? 'yes' : undefined) }), 'a/canary');
  assert.equal(service('h.test', '/'), 'a/stable');
  assert.equal(service('foreign.test', '/'), 'a/fallback');
  assert.deepEqual(table.request(facts('r.test', '/x')), {
    kind: 'redirect',
    status: 301,
    location: 'https://r.test/x',
  });
});

test('supports ports, host names, certificates and cross-namespace grants of Gateway listeners', () => {
  const listener = (name: string, more: object) => ({ name, port: 443, protocol: 'HTTPS', ...more });
  const secret = (name: string, namespace?: string) => ({ certificateRefs: [{ name, namespace }] });
  const gateway = {
    metadata: { name: 'g', namespace: 'a' },
    spec: {
      gatewayClassName: 'hyperedge',
      listeners: [
        listener('own', { hostname: '*.own.test', tls: secret('own') }),
        listener('granted', { hostname: 'granted.test', tls: secret('shared', 'b') }),
        listener('taken', { hostname: 'taken.test', tls: secret('private', 'b') }),
        listener('port', { hostname: 'port.test', port: 8443 }),
        listener('plain', { hostname: 'plain.test', port: 80, protocol: 'HTTP' }),
        listener('tcp', { protocol: 'TCP' }),
        listener('through', { tls: { mode: 'Passthrough' } }),
        listener('missing', { hostname: '*.missing.test', tls: secret('missing') }),
        listener('bad', { hostname: 'bad.test', tls: secret('bad') }),
        listener('bad-http', { hostname: 'bad.test', port: 80, protocol: 'HTTP' }),
      ],
    },
  } as Gateway;
  const httpRoute = (name: string, service: object = { name: 'web', port: 80 }): HttpRoute => ({
    metadata: { name, namespace: 'a', creationTimestamp: '2026-01-02T00:00:00Z' },
    spec: { parentRefs: [{ name: 'g' }], hostnames: [`${name}.test`], rules: [{ backendRefs: [service] }] },
  });
  const grant = {
    metadata: { name: 'x', namespace: 'b' },
    spec: {
      from: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', namespace: 'a' }],
      to: [{ group: '', kind: 'Secret', name: 'shared' }],
    },
  };
  const permits = permitsOf([grant]);
  const other = { name: 'web', namespace: 'b', port: 80 };
  const certificate = (namespace: string, name: string) =>
    name === 'missing' ? undefined : { certificate: `${namespace}/${name}`, key: '' };
  const check: CertificateCheck = (pair) =>
    pair.certificate === 'a/bad' ? 'spec.tls.key: private key does not match public key' : undefined;
  const { table } = planRouting(
    input({
      gateways: [gateway],
      permits,
      certificate,
      check,
      // Routes of another namespace keep their hosts, regardless of listener names.
      routes: [route('own', 'own.missing.test', { tls: { termination: 'edge' } }, 'c')],
      httpRoutes: [
        ...['granted', 'taken', 'port', 'x.missing', 'bad'].map((name) => httpRoute(name)),
        ...[httpRoute('plain', other), httpRoute('x.own')],
      ],
    }),
  );
  const served = (host: string): string | undefined => {
    const found = table.tls(host);
    return found.kind === 'terminate' ? found.certificate?.certificate : found.kind;
  };
  assert.deepEqual(['x.own.test', 'granted.test', 'taken.test'].map(served), ['a/own', 'b/shared', 'refused']);
  assert.deepEqual(['x.missing.test', 'y.x.missing.test', 'bad.test'].map(served), Array(3).fill('refused'));
  assert.deepEqual(['own.missing.test', 'missing.test', 'other.test'].map(served), Array(3).fill(undefined));
  assert.equal(table.request(facts('bad.test', '/', { secure: true })).kind, 'misdirected');
  assert.equal(table.request(facts('bad.test', '/')).kind, 'backend', 'the HTTP listener serves');
  const secure = (host: string): string => table.request(facts(host, '/', { secure: true })).kind;
  assert.deepEqual(['x.own.test', 'granted.test', 'taken.test', 'port.test', 'plain.test'].map(secure), [
    'backend',
    'backend',
    'none',
    'none',
    'none',
  ]);
  assert.equal(table.request(facts('x.own.test', '/')).kind, 'none', 'no HTTP listener has the name');
  const plain = table.request(facts('plain.test', '/'));
  assert.deepEqual(
    plain.kind === 'backend' ? plain.backend.pools[0]?.endpoints : plain,
    [],
    'no grant for the service',
  );
  assert.equal(unpermittedBackend(httpRoute('plain', other), permits), 'b/web');
  assert.equal(unpermittedBackend(httpRoute('plain'), permits), undefined);
  assert.deepEqual(secretsOfGateway(gateway, permits), ['a/own', 'b/shared', 'a/missing', 'a/bad']);
  const status = gatewayStatus(
    gateway,
    [],
    () => 0,
    { permits, certificates: certificateProblem({ certificate, check }) },
    'now',
  ) as {
    listeners: { name: string; conditions: { type: string; status: string; reason: string; message: string }[] }[];
  };
  assert.deepEqual(
    status.listeners.map(
      ({ conditions }) => conditions.find((each) => each.status === 'False' && each.type !== 'Programmed')?.reason,
    ),
    [
      ...[undefined, undefined, 'RefNotPermitted', 'PortUnavailable', undefined],
      ...['UnsupportedProtocol', 'UnsupportedValue', 'InvalidCertificateRef', 'InvalidCertificateRef', undefined],
    ],
  );
  const messages = status.listeners.flatMap(({ conditions }) => conditions.map(({ message }) => message));
  assert.ok(messages.includes('tls.certificateRefs: secret a/bad: key: private key does not match public key'));
  const programmed = status.listeners[7]?.conditions.find(({ type }) => type === 'Programmed');
  assert.deepEqual([programmed?.status, programmed?.reason], ['False', 'Invalid']);
});

test('distributes requests exactly by weight, skips weight zero, and sends a cookie to the same server again', () => {
  const { table } = planRouting(
    input({
      routes: [
        route('w', 'w.test', {
          to: { kind: 'Service', name: 'big', weight: 192 },
          alternateBackends: [
            { kind: 'Service', name: 'small', weight: 64 },
            { kind: 'Service', name: 'off', weight: 0 },
          ],
        }),
      ],
      slices: (key) => [slice(key === 'a/big' ? '10.0.0.1' : '10.0.0.2')],
    }),
  );
  const found = table.request(facts('w.test', '/'));
  assert.ok(found.kind === 'backend');
  const balancer = new Balancer(() => 0.5);
  const counts = new Map<string, number>();
  for (let at = 0; at < 256; at++) {
    const choice = balancer.pick(found.backend, { address: '192.0.2.1', cookie: undefined }, new Set());
    counts.set(choice?.pool.service ?? '', (counts.get(choice?.pool.service ?? '') ?? 0) + 1);
  }
  assert.deepEqual([...counts].sort(), [
    ['a/big', 192],
    ['a/small', 64],
  ]);
  const first = balancer.pick(found.backend, { address: '192.0.2.1', cookie: undefined }, new Set(['10.0.0.1:8080']));
  assert.equal(first?.key, '10.0.0.2:8080');
  for (let at = 0; at < 10; at++) {
    const sticky = balancer.pick(found.backend, { address: '192.0.2.1', cookie: first?.cookie }, new Set());
    assert.equal(sticky?.key, '10.0.0.2:8080');
  }
});

test('sets the condition Admitted, keeps status entries of other routers, and writes only changes', () => {
  const given = route('s', 's.test');
  given.status = { ingress: [{ routerName: 'shard', host: 's.test' }] };
  const ingress = planRouteStatus(given, undefined, 'apps.test', '2026-01-01T00:00:00Z');
  assert.equal(ingress?.[0]?.routerCanonicalHostname, 'router-default.apps.test');
  assert.equal(ingress?.[1]?.routerName, 'shard');
  const admitted = { ...given, status: { ingress: ingress ?? [] } };
  assert.equal(planRouteStatus(admitted, undefined, 'apps.test', '2026-01-02T00:00:00Z'), undefined);
  const rejection = { reason: 'HostAlreadyClaimed', message: 'm' } as const;
  const [own] = planRouteStatus(admitted, rejection, 'apps.test', '2026-01-02T00:00:00Z') ?? [];
  assert.equal(own?.conditions?.[0]?.status, 'False');
  assert.equal(own?.conditions?.[0]?.lastTransitionTime, '2026-01-02T00:00:00Z');
});

const HAPROXY = '/usr/sbin/haproxy';
const missing = existsSync(HAPROXY) ? false : `${HAPROXY} is missing; apt-get install haproxy`;

test('renders a HAProxy configuration that haproxy -c accepts', { skip: missing }, async () => {
  const rewriting = route('rewriting', 'r.test', { path: '/x' });
  const evil = { path: '/a\nlisten evil\n  bind :9', pathType: 'Exact', backend: { service: { name: 'x' } } };
  const text = printedRoutes(
    input({
      ingresses: [
        {
          metadata: { name: 'evil', namespace: 'a' },
          spec: { ingressClassName: 'hyperedge', rules: [{ host: 'evil.test', http: { paths: [evil] } }] },
        },
      ],
      routes: [
        route('plain', 'a.test', { path: "/it's" }),
        {
          ...rewriting,
          metadata: {
            ...rewriting.metadata,
            annotations: { 'haproxy.router.openshift.io/rewrite-target': "/%[env(HOME)]'\\2" },
          },
        },
        route('pass', 'p.test', { tls: { termination: 'passthrough' } }),
        route('wild', 'www.w.test', { wildcardPolicy: 'Subdomain' }),
      ],
    }),
    { certificates: undefined, ca: '/nonexistent' },
  );
  assert.match(text, /use_backend \S+ if \{ req.ssl_sni -m reg -i '\^p\\.test\$' \}/);
  assert.doesNotMatch(text, /evil/, 'a line break begins no directive');
  assert.ok(text.includes(`'/%%[env(HOME)]'"'"'\\\\2/\\1'`), 'a rewritten path is literal');
  const directory = await mkdtemp(join(tmpdir(), 'he-haproxy-'));
  try {
    await writeFile(join(directory, 'haproxy.cfg'), text);
    execFileSync(HAPROXY, ['-c', '-f', join(directory, 'haproxy.cfg')], { stdio: 'pipe' });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

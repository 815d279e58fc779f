/** Routes, an Ingress and an HTTPRoute on one host, with curl and the packaged executable. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Route } from '../../src/network/router/kinds/routes/types.ts';
import { createAuthority, issue, lifetimeFrom } from '../../src/pki/index.ts';
import { Appliance, eventually } from './harness.ts';

const DOMAIN = 'apps.cluster.local';
const [HTTP, HTTPS] = [18_080, 18_443];

describe('routes', { timeout: 400_000 }, () => {
  let host: Appliance;
  let address: string;
  let servers: ChildProcess;
  let ca: Awaited<ReturnType<typeof createAuthority>>;

  const apply = (...items: object[]): Promise<string> =>
    host.must(['apply', '-f', '-'], { input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }) });
  const routeOf = async (name: string): Promise<Route> =>
    JSON.parse(await host.must(['get', 'route', name, '-o', 'json']));
  const route = (name: string, spec: object, annotations: object = {}): object => ({
    apiVersion: 'route.openshift.io/v1',
    kind: 'Route',
    metadata: { name, annotations },
    spec: { to: { kind: 'Service', name: 'web' }, port: { targetPort: HTTP }, ...spec },
  });
  const curl = async (url: string, ...args: string[]): Promise<string> => {
    const { hostname, port, protocol } = new URL(url);
    const at = port === '' ? (protocol === 'https:' ? '443' : '80') : port;
    const given = ['-sS', '-i', '--max-time', '10', '--resolve', `${hostname}:${at}:${address}`, ...args, url];
    const ran = await host.inside('curl', given);
    return ran.stdout + ran.stderr;
  };
  const answers = (url: string, pattern: RegExp, ...args: string[]): Promise<string> =>
    eventually(`${url} answers ${pattern}`, 30_000, async () => {
      const text = await curl(url, ...args);
      if (!pattern.test(text)) throw new Error(text);
      return text;
    });

  before(async () => {
    host = await Appliance.create();
    await host.start(150_000);
    const nodes = JSON.parse(await host.must(['get', 'nodes', '-o', 'json']));
    address = nodes.items[0].status.addresses.find((each: { type: string }) => each.type === 'InternalIP').address;
    ca = await createAuthority('routes-e2e', lifetimeFrom(Date.now(), 10));
    const pair = await issue(ca, {
      subject: { commonName: 'pass' },
      usages: ['server'],
      names: { dns: [`pass-default.${DOMAIN}`], ips: [] },
      validity: lifetimeFrom(Date.now(), 10),
    });
    await writeFile(join(host.root, 'ca.pem'), ca.certPem);
    const program = fileURLToPath(new URL('router-servers.child.ts', import.meta.url));
    const ports = [String(HTTP), String(HTTPS)];
    servers = host.spawnInside(process.execPath, [program, address, ...ports, pair.certPem, pair.keyPem]);
    await apply(
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'web' },
        spec: {
          ports: [
            { name: 'http', port: 80, targetPort: HTTP },
            { name: 'https', port: 443, targetPort: HTTPS },
          ],
        },
      },
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
        addressType: 'IPv4',
        ports: [
          { name: 'http', port: HTTP },
          { name: 'https', port: HTTPS },
        ],
        endpoints: [{ addresses: [address], conditions: { ready: true } }],
      },
    );
  });
  after(async () => {
    servers?.kill();
    await host?.stop();
  });

  test('generates a host, admits the route and terminates edge TLS', async () => {
    const tls = { termination: 'edge', insecureEdgeTerminationPolicy: 'Redirect' };
    await apply(route('edge', { tls }));
    const admitted = await eventually('Admitted', 30_000, async () => {
      const found = await routeOf('edge');
      return found.status?.ingress?.[0]?.conditions?.[0]?.status === 'True' ? found : undefined;
    });
    assert.equal(admitted.spec?.host, `edge-default.${DOMAIN}`);
    assert.equal(admitted.metadata?.annotations?.['openshift.io/host.generated'], 'true');
    assert.equal(admitted.status?.ingress?.[0]?.routerCanonicalHostname, `router-default.${DOMAIN}`);
    const caFile = join(host.root, 'etc/origin/master/ca.crt');
    await answers(`https://edge-default.${DOMAIN}/x`, /HTTP\/2 200.*plain \/x https/s, '--cacert', caFile);
    await answers(
      `http://edge-default.${DOMAIN}/x`,
      new RegExp(`302.*location: https://edge-default.${DOMAIN}/x`, 'is'),
    );
  });

  test('routes support passthrough and re-encryption', async () => {
    const port = { targetPort: 'https' };
    const reencrypt = { termination: 'reencrypt', destinationCACertificate: ca.certPem };
    await apply(
      route('pass', { port, tls: { termination: 'passthrough' } }),
      route('sealed', { port, tls: reencrypt, path: '/a' }),
    );
    await answers(`https://pass-default.${DOMAIN}/p`, /sealed \/p/, '--cacert', join(host.root, 'ca.pem'));
    await answers(`https://sealed-default.${DOMAIN}/a/b`, /sealed \/a\/b/, '-k');
    await answers(`https://sealed-default.${DOMAIN}/b`, /HTTP\/2 503/, '-k');
  });

  test('rejects only routes with a host of another namespace or a broken certificate', async () => {
    await host.must(['create', 'namespace', 'thief']);
    const stolen = route('stolen', { host: `edge-default.${DOMAIN}` }) as { metadata: object };
    await apply({ ...stolen, metadata: { ...stolen.metadata, namespace: 'thief' } });
    await apply(route('broken', { tls: { termination: 'edge', certificate: 'no PEM', key: 'none' } }));
    const reason = (name: string, namespace: string) =>
      eventually(`status of ${name}`, 30_000, async () => {
        const found: Route = JSON.parse(await host.must(['get', 'route', name, '-n', namespace, '-o', 'json']));
        return found.status?.ingress?.[0]?.conditions?.[0]?.reason;
      });
    assert.equal(await reason('stolen', 'thief'), 'HostAlreadyClaimed');
    assert.equal(await reason('broken', 'default'), 'ExtendedValidationFailed');
    await answers(`https://edge-default.${DOMAIN}/y`, /plain \/y https/, '-k');
  });

  test('serves an Ingress of the default class and an HTTPRoute', async () => {
    await apply({
      apiVersion: 'networking.k8s.io/v1',
      kind: 'Ingress',
      metadata: { name: 'shop' },
      spec: {
        rules: [
          {
            host: 'shop.test',
            http: {
              paths: [
                { path: '/exact', pathType: 'Exact', backend: { service: { name: 'web', port: { number: 80 } } } },
                { path: '/pre', pathType: 'Prefix', backend: { service: { name: 'web', port: { name: 'http' } } } },
              ],
            },
          },
        ],
      },
    });
    await answers('http://shop.test/exact', /plain \/exact http/);
    await answers('http://shop.test/pre/x', /plain \/pre\/x http/);
    assert.match(await curl('http://shop.test/exact/x'), /503/);
    const status = await eventually('address of the Ingress', 30_000, async () => {
      const found = JSON.parse(await host.must(['get', 'ingress', 'shop', '-o', 'json']));
      return found.status?.loadBalancer?.ingress?.[0]?.ip;
    });
    assert.equal(status, address);
    const gateway = 'gateway.networking.k8s.io/v1';
    const listeners = [{ name: 'http', port: 80, protocol: 'HTTP' }];
    await eventually('Gateway API', 30_000, async () =>
      (await host.kubectl(['get', 'gatewayclass', 'hyperedge'])).code === 0 ? true : undefined,
    );
    await apply(
      {
        apiVersion: gateway,
        kind: 'Gateway',
        metadata: { name: 'edge' },
        spec: { gatewayClassName: 'hyperedge', listeners },
      },
      {
        apiVersion: gateway,
        kind: 'HTTPRoute',
        metadata: { name: 'split' },
        spec: {
          parentRefs: [{ name: 'edge' }],
          hostnames: ['gw.test'],
          rules: [
            { matches: [{ path: { type: 'PathPrefix', value: '/g' } }], backendRefs: [{ name: 'web', port: 80 }] },
          ],
        },
      },
    );
    await answers('http://gw.test/g/1', /plain \/g\/1 http/);
    // A certificate of another namespace with a ReferenceGrant, which permits hosts to read it.
    const sealed = await issue(ca, {
      subject: { commonName: 'gw.test' },
      usages: ['server'],
      names: { dns: ['gw.test'], ips: [] },
      validity: lifetimeFrom(Date.now(), 10),
    });
    const data = { 'tls.crt': btoa(sealed.certPem), 'tls.key': btoa(sealed.keyPem) };
    const from = [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', namespace: 'default' }];
    const certificateRefs = [{ name: 'gw', namespace: 'kube-public' }];
    await apply(
      {
        apiVersion: 'v1',
        kind: 'Secret',
        type: 'kubernetes.io/tls',
        metadata: { name: 'gw', namespace: 'kube-public' },
        data,
      },
      {
        apiVersion: 'gateway.networking.k8s.io/v1beta1',
        kind: 'ReferenceGrant',
        metadata: { name: 'gw', namespace: 'kube-public' },
        spec: { from, to: [{ group: '', kind: 'Secret' }] },
      },
      {
        apiVersion: gateway,
        kind: 'Gateway',
        metadata: { name: 'edge' },
        spec: {
          gatewayClassName: 'hyperedge',
          listeners: [...listeners, { name: 'tls', port: 443, protocol: 'HTTPS', tls: { certificateRefs } }],
        },
      },
    );
    await answers('https://gw.test/g/2', /plain \/g\/2 https/, '--cacert', join(host.root, 'ca.pem'));
    await eventually('Accepted', 30_000, async () => {
      const found = JSON.parse(await host.must(['get', 'httproute', 'split', '-o', 'json']));
      return found.status?.parents?.[0]?.conditions?.[0]?.status === 'True' ? true : undefined;
    });
  });

  test('haproxy-config --routes prints the admitted routes, and /metrics counts the routes', async () => {
    const printed = await host.hyperedge(['haproxy-config', '--routes', '--root', host.root]);
    assert.equal(printed.code, 0, printed.stderr);
    assert.match(printed.stdout, /req\.ssl_sni -m reg -i '\^pass-default\\\.apps/);
    assert.match(printed.stdout, /# ingress\/default\/shop shop\.test\/exact/);
    assert.doesNotMatch(printed.stdout, /thief|PRIVATE KEY/);
    const ran = await host.inside('curl', ['-sS', 'http://127.0.0.1:1936/metrics']);
    assert.match(ran.stdout, /haproxy_backend_sessions_total\{namespace="default",route="edge"\} [1-9]/);
  });
});

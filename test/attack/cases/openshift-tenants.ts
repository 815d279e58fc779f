/** Attempts of a tenant or a compromised node to take hosts, tokens, host ports, operators and image tags. */
import assert from 'node:assert/strict';
import { eventually } from '../../e2e/harness.ts';
import type { AttackLab, RawAnswer, Tenant } from '../lab.ts';
import type { AttackCase } from '../port.ts';

const DOMAIN = 'apps.cluster.local';
const ROUTES = '/apis/route.openshift.io/v1';
const INGRESSES = '/apis/networking.k8s.io/v1';
const OLM = 'operators.coreos.com/v1alpha1';

const route = (name: string, spec: object): object => ({
  apiVersion: 'route.openshift.io/v1',
  kind: 'Route',
  metadata: { name },
  spec: { to: { kind: 'Service', name: 'web' }, ...spec },
});
const ingress = (name: string, host: string | undefined): object => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  metadata: { name },
  spec: {
    ingressClassName: 'hyperedge',
    rules: [
      {
        ...(host === undefined ? {} : { host }),
        http: {
          paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }],
        },
      },
    ],
  },
});

/** A server of the tenant that responds to every path with the name of its namespace. */
async function serve(lab: AttackLab, { namespace }: Tenant, address: string, port: number): Promise<void> {
  const metadata = { name: 'web', namespace };
  await lab.pods.apply(
    { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [{ port: 80 }] } },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [address], conditions: { ready: true } }],
      ports: [{ port, protocol: 'TCP' }],
    },
  );
}

async function condition(lab: AttackLab, name: string, namespace: string): Promise<string> {
  const path = '{.status.ingress[0].conditions[?(@.type=="Admitted")]}';
  return lab.pods.kubectl('get', 'route', name, '-n', namespace, '-o', `jsonpath=${path}`);
}

const requestHost = (lab: AttackLab, host: string, path = '/'): Promise<RawAnswer> =>
  lab.curl(`http://${host}${path}`, ['--resolve', `${host}:80:127.0.0.1`]);

const hostPorts: AttackCase = {
  finding: 41,
  title: 'a LoadBalancer service cannot take the SSH, VXLAN or portmap port of the host',
  attack: async (lab) => {
    const tenant = await lab.tenant('edit', { 'pod-security.kubernetes.io/enforce': 'restricted' });
    const at = `/api/v1/namespaces/${tenant.namespace}/services`;
    for (const [name, given] of [
      ['ssh', { port: 22 }],
      ['vxlan', { port: 4789, protocol: 'UDP' }],
      ['portmap', { port: 111 }],
    ] as const) {
      const spec = { type: 'LoadBalancer', selector: { app: 'web' }, ports: [{ ...given, targetPort: 8080 }] };
      const made = await lab.request(tenant, 'POST', at, {
        kind: 'Service',
        apiVersion: 'v1',
        metadata: { name },
        spec,
      });
      assert.equal(made.code, 201, made.body);
      await eventually(`the refusal of ${name}`, 20_000, async () => {
        const events = await lab.pods.kubectl('get', 'events', '-n', tenant.namespace, '-o', 'json');
        return (
          events.includes(`port ${'protocol' in given ? 'UDP' : 'TCP'}/${given.port} is reserved for the hosts`) ||
          undefined
        );
      });
      const ip = 'jsonpath={.status.loadBalancer.ingress}';
      assert.equal(await lab.pods.kubectl('get', 'service', name, '-n', tenant.namespace, '-o', ip), '');
    }
    await lab.pods.kubectl('delete', 'namespace', tenant.namespace, '--wait=false');
  },
};

const falseReports: AttackCase = {
  finding: 42,
  // Other cases use the first node in the list.
  exclusive: true,
  title: 'false reports of a node cannot redirect traffic, take ports from services or move an image tag',
  attack: async (lab) => {
    const tenant = await lab.tenant('edit');
    const digest = `sha256:${'e'.repeat(64)}`;
    const liar = {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'liar', annotations: { 'hyperedge.dev/reserved-host-ports': 'TCP/8089,TCP/443' } },
    };
    await lab.pods.apply(liar);
    const status = {
      conditions: [{ type: 'Ready', status: 'True', reason: 'x', message: 'x' }],
      addresses: [
        { type: 'InternalIP', address: '198.51.100.77' },
        { type: 'ExternalIP', address: '198.51.100.88' },
      ],
      images: [{ names: ['registry.lab/shop/app:1', `evil.lab/app@${digest}`], sizeBytes: 1 }],
    };
    await lab.pods.kubectl('patch', 'node', 'liar', '--subresource=status', '-p', JSON.stringify({ status }));
    const spec = { type: 'LoadBalancer', ports: [{ port: 8089, targetPort: 8080 }] };
    const at = `/api/v1/namespaces/${tenant.namespace}/services`;
    const body = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'thief' }, spec };
    assert.equal((await lab.request(tenant, 'POST', at, body)).code, 201);
    const ip = 'jsonpath={.status.loadBalancer.ingress[*].ip}';
    const addresses = await eventually('an address of the service', 20_000, async () => {
      const found = await lab.pods.kubectl('get', 'service', 'thief', '-n', tenant.namespace, '-o', ip);
      return found === '' ? undefined : found;
    });
    assert.ok(!addresses.includes('198.51.100.88'), addresses);
    const { stdout } = await lab.appliance.inside('nft', ['list', 'ruleset']);
    assert.doesNotMatch(stdout, /198\.51\.100\.(77|88) \. tcp/);
    const imported = await lab.request(
      tenant,
      'POST',
      `/apis/image.openshift.io/v1/namespaces/${tenant.namespace}/imagestreamimports`,
      {
        apiVersion: 'image.openshift.io/v1',
        kind: 'ImageStreamImport',
        metadata: { name: 'app' },
        spec: {
          import: true,
          images: [{ from: { kind: 'DockerImage', name: 'registry.lab/shop/app:1' }, to: { name: '1' } }],
        },
      },
    );
    assert.equal(imported.code, 201, imported.body);
    assert.ok(!imported.body.includes(digest), imported.body);
    await lab.pods.kubectl('delete', 'node', 'liar');
    await lab.pods.kubectl('delete', 'namespace', tenant.namespace, '--wait=false');
  },
};

const ownedHosts: AttackCase = {
  finding: 43,
  title: 'an older Ingress cannot take a host of another namespace, and a catch-all Ingress cannot take its paths',
  attack: async (lab) => {
    const [thief, victim] = [await lab.tenant('edit'), await lab.tenant('edit')];
    const ingresses = (tenant: Tenant) => `${INGRESSES}/namespaces/${tenant.namespace}/ingresses`;
    const made = await lab.request(thief, 'POST', ingresses(thief), ingress('old', 'mine.test'));
    assert.equal(made.code, 201, made.body);
    assert.equal((await lab.request(thief, 'POST', ingresses(thief), ingress('all', undefined))).code, 201);
    const path = '{.items[0].status.addresses[?(@.type=="InternalIP")].address}';
    const master = ['-l', 'node-role.kubernetes.io/master', '-o', `jsonpath=${path}`];
    const node = await lab.pods.kubectl('get', 'nodes', ...master);
    // The host's own health port serves as the backend of the attacker.
    await serve(lab, thief, node, 8444);
    await new Promise((resolve) => setTimeout(resolve, 1100));
    const routes = `${ROUTES}/namespaces/${victim.namespace}/routes`;
    const own = await lab.request(victim, 'POST', routes, route('shop', { host: 'shop.test', path: '/api' }));
    assert.equal(own.code, 201, own.body);
    await eventually('the route of the victim', 20_000, async () =>
      (await condition(lab, 'shop', victim.namespace)).includes('"status":"True"') ? true : undefined,
    );
    const changes = [{ op: 'replace', path: '/spec/rules/0/host', value: 'shop.test' }];
    const moved = await lab.kubectlAs(thief, ['patch', 'ingress', 'old', '--type=json', '-p', JSON.stringify(changes)]);
    assert.equal(moved.code, 0, moved.stderr);
    await new Promise((resolve) => setTimeout(resolve, 1000));
    assert.match(await condition(lab, 'shop', victim.namespace), /"status":"True"/);
    for (const path of ['/api', '/', '/login'])
      assert.equal((await requestHost(lab, 'shop.test', path)).code, 503, path);
    for (const { namespace } of [thief, victim])
      await lab.pods.kubectl('delete', 'namespace', namespace, '--wait=false');
  },
};

const reservedHosts: AttackCase = {
  finding: 44,
  title: 'tenants cannot claim the hosts of console and OAuth or get tokens for the hosts',
  attack: async (lab) => {
    const tenant = await lab.tenant('edit');
    const at = `${ROUTES}/namespaces/${tenant.namespace}/routes`;
    for (const first of ['console-openshift-console', 'oauth-openshift', 'downloads-openshift-console']) {
      const made = await lab.request(tenant, 'POST', at, route('thief', { host: `${first}.${DOMAIN}` }));
      assert.equal(made.code, 422, made.body);
      assert.match(made.body, /is reserved for namespaces openshift-/);
    }
    const wild = await lab.request(
      tenant,
      'POST',
      at,
      route('wild', { host: 'www.w.test', wildcardPolicy: 'Subdomain' }),
    );
    assert.equal(wild.code, 201, wild.body);
    await eventually('the refusal of the wildcard', 20_000, async () =>
      (await condition(lab, 'wild', tenant.namespace)).includes('RouteNotAdmitted') ? true : undefined,
    );
    const authorize = (redirect: string, type: string): Promise<{ code: number; body: string }> => {
      const query = `client_id=console&response_type=${type}&redirect_uri=${encodeURIComponent(redirect)}`;
      return lab.curl(`https://127.0.0.1:8443/oauth/authorize?${query}`);
    };
    for (const type of ['code', 'token']) {
      const answer = await authorize(`https://console-openshift-console.${DOMAIN}/auth/callback`, type);
      assert.equal(answer.code, 400, answer.body);
      assert.match(answer.body, /redirect_uri: is not registered for the client/);
    }
    await lab.pods.kubectl('delete', 'namespace', tenant.namespace, '--wait=false');
  },
};

const operators: AttackCase = {
  finding: 45,
  title: 'a ClusterServiceVersion in a limited OperatorGroup cannot add permissions on server APIs to built-in roles',
  attack: async (lab) => {
    const { namespace } = await lab.tenant();
    const group = 'security.openshift.io';
    const crd = `securitycontextconstraints.${group}`;
    const metadata = { name: 'seize.v1', namespace };
    await lab.pods.apply(
      {
        apiVersion: 'operators.coreos.com/v1',
        kind: 'OperatorGroup',
        metadata: { name: 'group', namespace },
        spec: { targetNamespaces: [namespace], serviceAccountName: 'attacker' },
      },
      {
        apiVersion: OLM,
        kind: 'ClusterServiceVersion',
        metadata,
        spec: {
          displayName: 'x',
          version: '1.0.0',
          installModes: [{ type: 'OwnNamespace', supported: true }],
          customresourcedefinitions: { owned: [{ name: crd, version: 'v1', kind: 'SecurityContextConstraints' }] },
          apiservicedefinitions: {
            owned: [{ name: 'things', group: 'apps', version: 'v9', kind: 'Thing', deploymentName: 'x' }],
          },
          install: {
            strategy: 'deployment',
            spec: {
              deployments: [
                {
                  name: 'x',
                  spec: {
                    replicas: 0,
                    selector: { matchLabels: { app: 'x' } },
                    template: { metadata: { labels: { app: 'x' } }, spec: { containers: [{ name: 'x', image: 'x' }] } },
                  },
                },
              ],
            },
          },
        },
      },
    );
    await new Promise((resolve) => setTimeout(resolve, 5000));
    const roles = await lab.pods.kubectl('get', 'clusterroles', '-l', 'olm.managed=true', '-o', 'name');
    assert.ok(!roles.includes(crd), roles);
    const phase = await lab.pods.kubectl('get', 'csv', 'seize.v1', '-n', namespace, '-o', 'jsonpath={.status.phase}');
    assert.notEqual(phase, 'Succeeded');
    const services = await lab.pods.kubectl('get', 'apiservices', '-o', 'name');
    assert.ok(!services.includes('v9.apps'), services);
    await lab.pods.kubectl('delete', 'namespace', namespace, '--wait=false');
  },
};

export const cases: readonly AttackCase[] = [hostPorts, falseReports, ownedHosts, reservedHosts, operators];

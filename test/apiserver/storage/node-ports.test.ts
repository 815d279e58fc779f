/** Node ports of services, and the health check port. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Service, ServiceSpec } from '../../../src/api/generated/core/v1.ts';
import { startServer, type TestServer } from '../harness.ts';

let server: TestServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const PATH = '/api/v1/namespaces/default/services';
const DNS = [
  { name: 'udp', port: 53, protocol: 'UDP' },
  { name: 'tcp', port: 53, protocol: 'TCP' },
  { name: 'metrics', port: 9153, protocol: 'TCP' },
] as const;
const create = (name: string, spec: Partial<ServiceSpec>) =>
  server.call<Service & { message: string }>('POST', PATH, {
    body: { metadata: { name }, spec: { selector: { app: name }, ports: DNS, ...spec } },
  });
const portsOf = ({ spec }: Service): (number | undefined)[] => (spec?.ports ?? []).map(({ nodePort }) => nodePort);

test('TCP and UDP of the same service port get the same node port', async () => {
  const { code, body, text } = await create('dns', { type: 'NodePort' });
  assert.equal(code, 201, text);
  const [udp, tcp, metrics] = portsOf(body);
  assert.ok(udp !== undefined && udp >= 30_000);
  assert.equal(tcp, udp);
  assert.notEqual(metrics, udp);
  const requested = DNS.map((port) => (port.name === 'tcp' ? { ...port, nodePort: 30_053 } : port));
  const explicit = await create('explicit', { type: 'NodePort', ports: requested as never });
  assert.deepEqual(portsOf(explicit.body).slice(0, 2), [30_053, 30_053]);
});

test('a load balancer with local traffic policy gets a health check port and keeps the port', async () => {
  const made = await create('local', { type: 'LoadBalancer', externalTrafficPolicy: 'Local' });
  const check = made.body.spec?.healthCheckNodePort ?? 0;
  assert.ok(check >= 30_000 && check <= 32_767, made.text);
  assert.ok(!portsOf(made.body).includes(check));
  const patched = await server.call<Service>('PATCH', `${PATH}/local`, {
    type: 'application/merge-patch+json',
    body: { metadata: { labels: { a: 'b' } } },
  });
  assert.equal(patched.body.spec?.healthCheckNodePort, check);
  const used = await create('taken', {
    type: 'LoadBalancer',
    externalTrafficPolicy: 'Local',
    healthCheckNodePort: check,
  });
  assert.equal(used.code, 422);
  assert.match(used.body.message, /spec\.healthCheckNodePort: Invalid value: \d+: provided port is already allocated/);
  const outside = await create('outside', {
    type: 'LoadBalancer',
    externalTrafficPolicy: 'Local',
    healthCheckNodePort: 20_000,
  });
  assert.match(outside.body.message, /spec\.healthCheckNodePort: .*not in the valid range/);
  const cluster = await server.call<Service>('PATCH', `${PATH}/local`, {
    type: 'application/merge-patch+json',
    body: { spec: { externalTrafficPolicy: 'Cluster' } },
  });
  assert.equal(cluster.body.spec?.healthCheckNodePort, undefined);
  const again = await create('again', {
    type: 'LoadBalancer',
    externalTrafficPolicy: 'Local',
    healthCheckNodePort: check,
  });
  assert.equal(again.code, 201, again.text);
});

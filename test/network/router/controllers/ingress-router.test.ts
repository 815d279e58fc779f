/** The cluster part of the router on a real API server. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { DECLARED_ANNOTATION } from '../../../../src/api/kinds/nodes/nodes/serving-addresses.ts';
import { resources } from '../../../../src/api/resources.ts';
import { type Gateway, gateways, type HttpRoute, httpRoutes } from '../../../../src/network/router/core/index.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../../controllers/harness.ts';

const namespace = 'default';
const ADDRESS = '10.1.2.3';
const CERTIFICATE = { namespace: 'openshift-ingress', name: 'router-certs-default' };
let plane: ControlPlane;
before(async () => {
  plane = await startControlPlane({ router: true });
  await plane.addNode('n1', (node) => {
    node.metadata = { ...node.metadata, annotations: { [DECLARED_ANNOTATION]: ADDRESS } };
    if (node.status !== undefined) node.status.addresses = [{ type: 'InternalIP', address: ADDRESS }];
  });
});
after(() => plane.stop());

const certificate = () => plane.of(resources.secrets).get(CERTIFICATE.name, CERTIFICATE.namespace);
const admitted = async (name: string) => {
  const route = await plane.of(resources.routes).get(name, namespace);
  return route.status?.ingress?.[0]?.conditions?.find(({ type }) => type === 'Admitted');
};
const createRoute = (name: string, host: string) =>
  plane.of(resources.routes).create({
    metadata: { name, namespace },
    spec: { host, to: { kind: 'Service', name: 'app', weight: 100 } },
  });

test('admits the first route of a host and rejects the second', async () => {
  await createRoute('first', 'app.example.com');
  await eventually(async () => (await admitted('first'))?.status === 'True', 'the first route is admitted');
  await createRoute('second', 'app.example.com');
  const second = await eventually(() => admitted('second'), 'a condition of the second route');
  assert.deepEqual([second.status, second.reason], ['False', 'HostAlreadyClaimed']);
});

test('creates the default certificate again after its deletion', async () => {
  const { metadata, data } = await eventually(certificate, 'the certificate');
  assert.ok(data?.['tls.crt']);
  await plane.of(resources.secrets).delete(CERTIFICATE.name, CERTIFICATE.namespace);
  await eventually(async () => (await certificate()).metadata?.uid !== metadata?.uid, 'a new certificate');
});

test('reports the addresses of an ingress', async () => {
  const backend = { service: { name: 'app', port: { number: 80 } } };
  await plane.of(resources.ingresses).create({
    metadata: { name: 'web', namespace },
    spec: {
      ingressClassName: 'hyperedge',
      rules: [{ host: 'web.example.com', http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }],
    },
  });
  await eventually(async () => {
    const { status } = await plane.of(resources.ingresses).get('web', namespace);
    return status?.loadBalancer?.ingress?.[0]?.ip === ADDRESS;
  }, 'the address of the node');
});

test('creates the Gateway API kinds and reports the status of a gateway and its route', async () => {
  const listeners = [{ name: 'web', port: 80, protocol: 'HTTP' }];
  await eventually(
    () =>
      plane.of(gateways).create({
        apiVersion: 'gateway.networking.k8s.io/v1',
        kind: 'Gateway',
        metadata: { name: 'edge', namespace },
        spec: { gatewayClassName: 'hyperedge', listeners },
      } as Gateway),
    'the kind Gateway is served',
  );
  await plane.of(httpRoutes).create({
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: { name: 'shop', namespace },
    spec: { parentRefs: [{ name: 'edge' }], hostnames: ['shop.example.com'] },
  } as HttpRoute);
  await eventually(async () => {
    const { status } = (await plane.of(gateways).get('edge', namespace)) as {
      status?: { listeners?: { attachedRoutes?: number }[] };
    };
    return status?.listeners?.[0]?.attachedRoutes === 1;
  }, 'the listener has an attached route');
});

/** A metrics-server for tests: serves metrics.k8s.io with one node to clients with a front-proxy certificate. */
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createAuthority, issue, lifetimeFrom } from '../../../src/pki/certificate.ts';
import type { TestServer } from '../harness.ts';

const ROOT = '/apis/metrics.k8s.io/v1beta1';

interface MetricsServer {
  readonly port: number;
  readonly caBundle: string;
  stop(): Promise<void>;
}

const META = { name: 'n1', creationTimestamp: '2026-01-02T03:04:05Z' };
const NODE = {
  kind: 'NodeMetrics',
  apiVersion: 'metrics.k8s.io/v1beta1',
  metadata: META,
  timestamp: '2026-01-02T03:04:05Z',
  window: '30s',
  usage: { cpu: '500m', memory: '1Gi' },
};

const DOCUMENTS: Readonly<Record<string, object>> = {
  [ROOT]: {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: 'metrics.k8s.io/v1beta1',
    resources: [
      { name: 'nodes', singularName: '', namespaced: false, kind: 'NodeMetrics', verbs: ['get', 'list'] },
      { name: 'pods', singularName: '', namespaced: true, kind: 'PodMetrics', verbs: ['get', 'list'] },
    ],
  },
  [`${ROOT}/nodes`]: { kind: 'NodeMetricsList', apiVersion: 'metrics.k8s.io/v1beta1', metadata: {}, items: [NODE] },
  [`${ROOT}/nodes/n1`]: NODE,
};

export async function startMetricsServer(main: TestServer): Promise<MetricsServer> {
  const map = '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication';
  const { body } = await main.call<{ data: Record<string, string> }>('GET', map);
  const day = lifetimeFrom(Date.now(), 1);
  const ca = await createAuthority('metrics-ca', day);
  const pair = await issue(ca, {
    subject: { commonName: 'metrics-server' },
    usages: ['server'],
    names: { dns: ['metrics-server.default.svc'], ips: [] },
    validity: day,
  });
  const authority = body.data['requestheader-client-ca-file'] ?? '';
  const server = createServer({ cert: pair.certPem, key: pair.keyPem, ca: authority, requestCert: true });
  server.on('request', (request, response) => {
    const document = DOCUMENTS[(request.url ?? '').split('?', 1)[0] ?? ''];
    response.writeHead(document === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(document ?? {}));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    caBundle: Buffer.from(ca.certPem).toString('base64'),
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

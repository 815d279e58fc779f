/** The probe of another host during its update, with a real kubelet's certificate of its own authority. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import type { ConfigMap, Node } from '../../../src/api/generated/core/v1.ts';
import { resources } from '../../../src/api/resources.ts';
import { peerProbe } from '../../../src/host/openshift/peer-probe.ts';
import { createAuthority, issue, lifetimeFrom } from '../../../src/pki/certificate.ts';
import { nodeFiles } from '../../../src/pki/index.ts';
import { deriveKubeletAuthority } from '../../../src/pki/kubelet-authority.ts';
import { MemoryApi } from '../../kubelet/memory-api.ts';

let root = '';
let kubelet: Server;
let api: Server;
let authority = '';
const portOf = (server: Server): number => (server.address() as AddressInfo).port;

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'peer-probe-'));
  const validity = lifetimeFrom(Date.now(), 1);
  const cluster = await createAuthority('cluster', validity);
  const ofKubelets = await deriveKubeletAuthority(cluster);
  authority = ofKubelets.certPem;
  const serve = async (by: typeof cluster): Promise<Server> => {
    const names = { dns: [], ips: ['127.0.0.1'] };
    const own = await issue(by, { subject: { commonName: 'server' }, usages: ['server'], names, validity });
    const server = createServer({ cert: own.certPem, key: own.keyPem }, (_, response) => response.end('ok'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return server;
  };
  [kubelet, api] = [await serve(ofKubelets), await serve(cluster)];
  const { clientCa } = nodeFiles(root);
  await mkdir(dirname(clientCa), { recursive: true });
  await writeFile(clientCa, cluster.certPem);
});
after(async () => {
  for (const server of [kubelet, api]) {
    server.closeAllConnections();
    server.close();
  }
  await rm(root, { recursive: true });
});

const peer = (): Node => ({
  metadata: { name: 'peer', labels: { 'node-role.kubernetes.io/master': '' } },
  status: {
    addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
    daemonEndpoints: { kubeletEndpoint: { Port: portOf(kubelet) } },
  },
});
const withAuthority = (pem: string): MemoryApi => {
  const memory = new MemoryApi();
  const metadata = { namespace: 'kube-public', name: 'kubelet-serving-ca' };
  memory.put<ConfigMap>(resources.configMaps, { metadata, data: { 'ca-bundle.crt': pem } });
  return memory;
};
const probe = (memory: MemoryApi) =>
  peerProbe({ root, ports: { api: portOf(api) } as never }, memory.client())(peer(), AbortSignal.timeout(5_000));

test('accepts a kubelet whose certificate the CA of kubelets has issued', async () => {
  await probe(withAuthority(authority));
});

test('rejects a kubelet with a certificate of another CA', async () => {
  const other = await createAuthority('other', lifetimeFrom(Date.now(), 1));
  await assert.rejects(probe(withAuthority(other.certPem)), /healthz: .*(VERIFY|unable|certificate)/i);
});

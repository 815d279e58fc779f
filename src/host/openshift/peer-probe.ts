/** Probe of another host. During an update of that host, its result shows whether the host is reachable. */
import { readFile } from 'node:fs/promises';
import type { Node } from '../../api/generated/core/v1.ts';
import { resources } from '../../api/resources.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { ApiClient } from '../../client/index.ts';
import { KUBELET_CA_KEY, KUBELET_CA_MAP } from '../../controllers/identity/cluster-info/plan.ts';
import { httpProbe } from '../../openshift/operators/cluster-operators/io/index.ts';
import type { Probe } from '../../openshift/operators/cluster-operators/port.ts';
import { nodeFiles } from '../../pki/index.ts';
import type { Settings } from '../config/settings.ts';

/** Probes the kubelet of another host, and its API server if it is a master. */
export function peerProbe(
  { root, ports }: Pick<Settings, 'root' | 'ports'>,
  client: ApiClient,
): (node: Node, signal: AbortSignal) => Promise<void> {
  const clusterCa = (): Promise<string> => readFile(nodeFiles(root).clientCa, 'utf8');
  // Certificates of kubelets are signed by a separate authority. Only masters have this authority in a file, so it is
  // read from the API.
  const kubeletCa = async (): Promise<string> => {
    const { name, namespace } = KUBELET_CA_MAP;
    const map = await client.resource(resources.configMaps).get(name, namespace);
    return `${await clusterCa()}\n${map.data?.[KUBELET_CA_KEY] ?? ''}`;
  };
  // A server that denies anonymous access to its health endpoint runs.
  const accept = (code: number): boolean => code < 400 || code === 401 || code === 403;
  // Probes are reused, because each probe keeps its connection.
  const probes = new Map<string, Probe>();
  return async ({ metadata, status }, signal) => {
    const address = status?.addresses?.find(({ type }) => type === 'InternalIP')?.address;
    const kubelet = status?.daemonEndpoints?.kubeletEndpoint?.Port;
    if (address === undefined || kubelet === undefined) throw new CodedError('no-address', 'the Node has no address');
    const master = metadata?.labels?.['node-role.kubernetes.io/master'] !== undefined;
    const host = address.includes(':') ? `[${address}]` : address;
    const targets = [
      { url: `https://${host}:${kubelet}/healthz`, ca: kubeletCa },
      ...(master ? [{ url: `https://${host}:${ports.api}/readyz`, ca: clusterCa }] : []),
    ];
    for (const { url, ca } of targets) {
      const probe = probes.get(url) ?? httpProbe({ url, ca, identity: address, accept });
      probes.set(url, probe);
      await probe(signal).catch((error: unknown) => {
        throw new CodedError('unreached', `${url}: ${messageOf(error)}`);
      });
    }
  };
}

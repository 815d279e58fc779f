/**
 * Cluster information for joining hosts: the kubeconfig in `kube-public/cluster-info`, which anonymous clients can read
 * and bootstrap tokens sign, and the settings in `kube-system/hyperedge-config`. Source: kubeadm's cluster-info.
 */
import type { ConfigMap, Endpoints } from '../../../api/generated/core/v1.ts';

export const SETTINGS_MAP = { namespace: 'kube-system', name: 'hyperedge-config' } as const;
export const INFO_MAP = { namespace: 'kube-public', name: 'cluster-info' } as const;

export interface ClusterFacts {
  /** URL of this master's API server. */
  readonly publicUrl: string;
  readonly caPem: string;
  /** Authorities that verify kubelets' serving certificates. */
  readonly kubeletCaPem: string;
  /** Settings with the same value on all hosts of the cluster. */
  readonly settings: Readonly<Record<string, string>>;
}

const SERVER = /"server":"(https:\/\/[^"]+)"/;

/** URLs of the API servers in the endpoints; `publicUrl` if there are none. */
export function apiServersOf(endpoints: Endpoints | undefined, publicUrl: string): string[] {
  const urls = (endpoints?.subsets ?? []).flatMap(({ addresses = [], ports = [] }) =>
    addresses.map(({ ip }) => `https://${ip.includes(':') ? `[${ip}]` : ip}:${ports[0]?.port ?? 443}`),
  );
  return urls.length === 0 ? [publicUrl] : [...new Set(urls)].sort();
}

/**
 * Returns the map to create or update; undefined if it is up to date. The kubeconfig keeps its server while the
 * endpoints contain that server.
 */
export function planClusterInfo(
  present: ConfigMap | undefined,
  apiServers: readonly string[],
  { publicUrl, caPem }: ClusterFacts,
  base64: (text: string) => string,
): ConfigMap | undefined {
  const named = SERVER.exec(present?.data?.['kubeconfig'] ?? '')?.[1];
  const server = named !== undefined && apiServers.includes(named) ? named : publicUrl;
  const kubeconfig = `${JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: '', cluster: { server, 'certificate-authority-data': base64(caPem) } }],
    contexts: null,
    'current-context': '',
    preferences: {},
    users: null,
  })}\n`;
  return withData(present, INFO_MAP, { ...present?.data, kubeconfig });
}

/**
 * Config map with the authorities that verify kubelets' serving certificates, for clients in the cluster. OpenShift
 * uses the same name.
 */
export const KUBELET_CA_MAP = { namespace: 'kube-public', name: 'kubelet-serving-ca' } as const;

export const KUBELET_CA_KEY = 'ca-bundle.crt';

/** Returns the map to create or update; undefined if it is up to date. */
export const planKubeletCa = (present: ConfigMap | undefined, { kubeletCaPem }: ClusterFacts): ConfigMap | undefined =>
  withData(present, KUBELET_CA_MAP, { ...present?.data, [KUBELET_CA_KEY]: kubeletCaPem });

/** Returns the map to create or update; undefined if it is up to date. Keys set by administrators are kept. */
export function planSettings(
  present: ConfigMap | undefined,
  apiServers: readonly string[],
  { settings }: ClusterFacts,
): ConfigMap | undefined {
  return withData(present, SETTINGS_MAP, { ...present?.data, ...settings, apiServers: apiServers.join() });
}

function withData(
  present: ConfigMap | undefined,
  metadata: { readonly namespace: string; readonly name: string },
  data: Record<string, string>,
): ConfigMap | undefined {
  if (present === undefined) return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...metadata }, data };
  const same = Object.entries(data).every(([name, value]) => present.data?.[name] === value);
  return same ? undefined : { ...present, data };
}

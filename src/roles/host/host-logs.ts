/** Logs of this host for the kubelet's `/logs`; `oc adm node-logs -u kubelet` reads the service of the host process. */
import { join } from 'node:path';
import type { HostLogSource } from '../../components/kubelet/host-logs-port.ts';
import { hostLogs } from '../../io/host/index.ts';

const SERVICE = 'hyperedge';
/** Components that are no services of their own here. */
const COMPONENTS = ['kubelet', 'kube-proxy', 'openshift-node', 'atomic-openshift-node', 'crio', 'etcd'];

export const hostLogsOf = (root: string): HostLogSource => ({
  logs: hostLogs(join(root, 'var/log')),
  units: new Map(COMPONENTS.flatMap((name) => [name, `${name}.service`].map((unit) => [unit, SERVICE]))),
});

/**
 * Logs of this host for the kubelet's `/logs`. `oc adm node-logs -u kubelet` returns the log of the host process's
 * service.
 */
import { join } from 'node:path';
import type { HostLogSource } from '../../kubelet/host-logs-port.ts';
import { hostLogs } from '../../kubelet/io/host-facts/index.ts';

const SERVICE = 'hyperedge';
/** Components that are separate services in OpenShift and part of the host process here. */
const COMPONENTS = ['kubelet', 'kube-proxy', 'openshift-node', 'atomic-openshift-node', 'crio', 'etcd'];

export const hostLogsOf = (root: string): HostLogSource => ({
  logs: hostLogs(join(root, 'var/log')),
  units: new Map(COMPONENTS.flatMap((name) => [name, `${name}.service`].map((unit) => [unit, SERVICE]))),
});

/**
 * Logs of this host for the kubelet's `/logs`. `oc adm node-logs -u kubelet` returns the log of the host process's
 * service.
 */
import { join } from 'node:path';
import { hostLogs } from '../../kubelet/io/host-facts/index.ts';
import type { HostLogSource } from '../../kubelet/ports/host-logs-port.ts';

/** Directory of the consoles' recordings, below the directory of the host's logs. */
export const RIG_RECORDINGS = 'origin/rigs';

const SERVICE = 'hyperedge';
/** Components that are separate services in OpenShift and part of the host process here. */
const COMPONENTS = ['kubelet', 'kube-proxy', 'openshift-node', 'atomic-openshift-node', 'crio', 'etcd'];

export const hostLogsOf = (root: string): HostLogSource => ({
  // The recordings of rigs need the permission rigs/recordings.
  logs: hostLogs({ directory: join(root, 'var/log'), excluded: [RIG_RECORDINGS] }),
  units: new Map(COMPONENTS.flatMap((name) => [name, `${name}.service`].map((unit) => [unit, SERVICE]))),
});

/**
 * SCCs that every cluster initially has. Source: openshift/cluster-kube-apiserver-operator
 * bindata/bootkube/scc-manifests of release 4.12. As in upstream, missing SCCs are created and edited SCCs are not
 * modified.
 */
import type { SecurityContextConstraints } from '../kinds/securitycontextconstraints/types.ts';

const VOLUMES = [
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'persistentVolumeClaim',
  'projected',
  'secret',
];
const DANGEROUS_CAPABILITIES = ['KILL', 'MKNOD', 'SETUID', 'SETGID'];
const MUST = { type: 'MustRunAs' };
const ANY = { type: 'RunAsAny' };

type Settings = Omit<SecurityContextConstraints, 'apiVersion' | 'kind' | 'metadata'>;

function constraints(name: string, about: string, settings: Settings): SecurityContextConstraints {
  return {
    apiVersion: 'security.openshift.io/v1',
    kind: 'SecurityContextConstraints',
    metadata: { name, annotations: { 'kubernetes.io/description': about } },
    allowHostDirVolumePlugin: false,
    allowHostIPC: false,
    allowHostNetwork: false,
    allowHostPID: false,
    allowHostPorts: false,
    allowPrivilegeEscalation: true,
    allowPrivilegedContainer: false,
    readOnlyRootFilesystem: false,
    requiredDropCapabilities: DANGEROUS_CAPABILITIES,
    fsGroup: MUST,
    runAsUser: { type: 'MustRunAsRange' },
    seLinuxContext: MUST,
    supplementalGroups: ANY,
    volumes: VOLUMES,
    users: [],
    groups: [],
    ...settings,
  };
}

/** Settings that all SCCs with the suffix `v2` have in common. */
const HARDENED: Settings = {
  allowPrivilegeEscalation: false,
  allowedCapabilities: ['NET_BIND_SERVICE'],
  requiredDropCapabilities: ['ALL'],
  seccompProfiles: ['runtime/default'],
};
const HOST_NETWORK: Settings = { allowHostNetwork: true, allowHostPorts: true, supplementalGroups: MUST };
const NON_ROOT: Settings = { fsGroup: ANY, runAsUser: { type: 'MustRunAsNonRoot' } };

export const DEFAULT_CONSTRAINTS: readonly SecurityContextConstraints[] = [
  constraints('anyuid', 'As restricted, but pods may run with any user and any group.', {
    fsGroup: ANY,
    groups: ['system:cluster-admins'],
    priority: 10,
    requiredDropCapabilities: ['MKNOD'],
    runAsUser: ANY,
  }),
  constraints('hostaccess', 'Allows all namespaces and directories of the host with users of the namespace.', {
    allowHostDirVolumePlugin: true,
    allowHostIPC: true,
    allowHostNetwork: true,
    allowHostPID: true,
    allowHostPorts: true,
    volumes: [...VOLUMES, 'hostPath'],
  }),
  constraints('hostmount-anyuid', 'As restricted, but with directories of the host and any user.', {
    allowHostDirVolumePlugin: true,
    fsGroup: ANY,
    requiredDropCapabilities: ['MKNOD'],
    runAsUser: ANY,
    users: ['system:serviceaccount:openshift-infra:pv-recycler-controller'],
    volumes: [...VOLUMES, 'hostPath', 'nfs'],
  }),
  constraints('hostnetwork', 'Allows the network and ports of the host with users of the namespace.', HOST_NETWORK),
  constraints('hostnetwork-v2', 'As hostnetwork, without capabilities and privilege escalation.', {
    ...HARDENED,
    ...HOST_NETWORK,
  }),
  constraints('nonroot', 'As restricted, but pods may run with any user other than root.', NON_ROOT),
  constraints('nonroot-v2', 'As nonroot, without capabilities and privilege escalation.', { ...HARDENED, ...NON_ROOT }),
  constraints('privileged', 'Allows everything. Only for administration of the cluster.', {
    allowHostDirVolumePlugin: true,
    allowHostIPC: true,
    allowHostNetwork: true,
    allowHostPID: true,
    allowHostPorts: true,
    allowPrivilegedContainer: true,
    allowedCapabilities: ['*'],
    allowedUnsafeSysctls: ['*'],
    fsGroup: ANY,
    groups: ['system:cluster-admins', 'system:nodes', 'system:masters'],
    requiredDropCapabilities: [],
    runAsUser: ANY,
    seLinuxContext: ANY,
    seccompProfiles: ['*'],
    users: ['system:admin', 'system:serviceaccount:openshift-infra:build-controller'],
    volumes: ['*'],
  }),
  constraints('restricted', 'Denies access to the host; pods run with the users of their namespace.', {}),
  constraints('restricted-v2', 'As restricted, without capabilities and privilege escalation. The default.', HARDENED),
];

/**
 * Permissions of controllers, hosts and the machine config server. A MachineConfig writes files of hosts as root, so
 * only cluster-admin may write them. Source: manifests of openshift/machine-config-operator 4.10.
 */
import type { ClusterRole, ClusterRoleBinding, PolicyRule } from '../../../../api/generated/rbac/v1.ts';
import {
  aggregateTo,
  clusterRole,
  clusterRoleBinding,
  eventsRule,
  group,
  READ,
  rule,
  serviceAccount,
  urlRule,
} from './notation.ts';

const GROUP = 'machineconfiguration.openshift.io';
const SEEN = 'containerruntimeconfigs controllerconfigs kubeletconfigs machineconfigpools';
const DAEMON = 'machine-config-daemon';
const SERVER = 'machine-config-server';

/** Rules of each controller, by the name of its service account. */
export const MACHINE_CONFIG_CONTROLLERS: readonly (readonly [string, readonly PolicyRule[]])[] = [
  [
    'machine-config-controller',
    [
      rule('create delete get list patch update watch', GROUP, 'machineconfigs'),
      rule('create get list patch update watch', GROUP, SEEN),
      rule('delete', GROUP, 'kubeletconfigs'),
      rule(
        'patch update',
        GROUP,
        'containerruntimeconfigs/status controllerconfigs/status kubeletconfigs/status machineconfigpools/status',
      ),
      rule(
        'update',
        GROUP,
        'containerruntimeconfigs/finalizers kubeletconfigs/finalizers machineconfigpools/finalizers',
      ),
      rule('get list patch update watch', 'core', 'nodes'),
      rule(READ, 'core', 'configmaps pods'),
      rule('patch', 'core', 'configmaps'),
      rule('create', 'core', 'pods/eviction'),
      rule('create delete get list patch watch', 'apps', 'daemonsets'),
      rule(READ, 'config.openshift.io', 'apiservers dnses images infrastructures schedulers'),
      eventsRule,
    ],
  ],
];

export const machineConfigRoles: readonly ClusterRole[] = [
  clusterRole(DAEMON, [
    rule(READ, GROUP, 'controllerconfigs machineconfigpools machineconfigs'),
    rule(READ, 'operator.openshift.io', 'machineconfigurations'),
  ]),
  // Paths of the machine config server, which queries the API server for authorization.
  clusterRole(SERVER, [urlRule('get', '/config/*')]),
  clusterRole(
    'system:openshift:machine-config-operator:cluster-reader',
    [rule(READ, GROUP, SEEN)],
    aggregateTo('cluster-reader'),
  ),
];

export const machineConfigBindings: readonly ClusterRoleBinding[] = [
  clusterRoleBinding(SERVER, [group('system:bootstrappers'), serviceAccount('node-bootstrapper', 'openshift-infra')]),
  clusterRoleBinding(DAEMON, [group('system:nodes')]),
];

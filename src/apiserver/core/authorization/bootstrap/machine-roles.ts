/** Rules of the machine controllers and of blank hosts. */
import type { ClusterRole, ClusterRoleBinding, PolicyRule } from '../../../../api/generated/rbac/v1.ts';
import { clusterRole, clusterRoleBinding, eventsRule, group, READ, rule } from './notation.ts';

const MACHINES = 'machine.openshift.io';
const HOSTS = 'metal3.io';
const HOST_OFFERER = 'system:host-offerer';

/** Rules of each controller, by the name of its service account. */
export const MACHINE_CONTROLLERS: readonly (readonly [string, readonly PolicyRule[]])[] = [
  [
    'machine-controller',
    [
      rule(`${READ} create delete patch update`, MACHINES, 'machines'),
      rule(`${READ} patch update`, MACHINES, 'machinehealthchecks machinesets'),
      rule('patch update', MACHINES, 'machinehealthchecks/status machines/status machinesets/status'),
      // Required for owner references with blockOwnerDeletion.
      rule('update', MACHINES, 'machines/finalizers machinesets/finalizers'),
      rule(`${READ} delete patch update`, HOSTS, 'baremetalhosts'),
      rule('patch update', HOSTS, 'baremetalhosts/status'),
      rule(`${READ} delete patch`, 'core', 'nodes'),
      rule(READ, 'core', 'pods'),
      rule('create', 'core', 'pods/eviction'),
      rule('get', 'core', 'secrets'),
      eventsRule,
    ],
  ],
];

/**
 * A blank host has no credentials until it has joined, so unauthenticated clients may create HostOffers. The handler
 * limits their rate. An offer grants nothing until a Machine claims the host.
 */
export const machineClusterRoles: readonly ClusterRole[] = [
  clusterRole(HOST_OFFERER, [rule('create', 'machine.hyperedge.dev', 'hostoffers')]),
];

export const machineClusterRoleBindings: readonly ClusterRoleBinding[] = [
  clusterRoleBinding(HOST_OFFERER, [group('system:unauthenticated'), group('system:nodes')], 'system:host-offerers'),
];

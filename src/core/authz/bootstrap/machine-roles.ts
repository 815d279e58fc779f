/** Rules of the machine controllers, and what a blank host may do. */
import type { ClusterRole, ClusterRoleBinding, PolicyRule } from 'kubernetes-types/rbac/v1';
import { clusterRole, clusterRoleBinding, eventsRule, group, READ, rule } from './notation.ts';

const MACHINES = 'machine.openshift.io';
const HOSTS = 'metal3.io';
const HOST_OFFERER = 'system:host-offerer';

/** By the service account, as the rules of the other controllers. */
export const MACHINE_CONTROLLERS: readonly (readonly [string, readonly PolicyRule[]])[] = [
  [
    'machine-controller',
    [
      rule(`${READ} create delete patch update`, MACHINES, 'machines'),
      rule(`${READ} patch update`, MACHINES, 'machinehealthchecks machinesets'),
      rule('patch update', MACHINES, 'machinehealthchecks/status machines/status machinesets/status'),
      // Owner references that block deletion.
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

/** A blank host has no credentials, and reports as a node once it has joined; what it sends is bounded, and grants nothing until a machine claims it. */
export const machineClusterRoles: readonly ClusterRole[] = [
  clusterRole(HOST_OFFERER, [rule('create', 'machine.hyperedge.dev', 'hostoffers')]),
];

export const machineClusterRoleBindings: readonly ClusterRoleBinding[] = [
  clusterRoleBinding(HOST_OFFERER, [group('system:unauthenticated'), group('system:nodes')], 'system:host-offerers'),
];

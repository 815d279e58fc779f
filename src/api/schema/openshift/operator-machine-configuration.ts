/**
 * Types of MachineConfiguration, including node disruption policies. Source: openshift/api operator/v1 of release 4.17,
 * enhancement "node disruption policies".
 */
import type { DeclaredType } from './declare.ts';
import { staticPodKind } from './operator-shared.ts';

const ACTION_TYPE =
  'None, Drain, Reload, Restart, DaemonReload or Reboot; status also Special. None and Reboot stand alone.';

const actionOf = (name: string): DeclaredType => ({
  about: `${name} is one step of a policy.`,
  fields: {
    type: ['!string', ACTION_TYPE],
    reload: ['#ReloadService', 'Settings for type Reload.'],
    restart: ['#RestartService', 'Settings for type Restart.'],
  },
});

const policiesOf = (suffix: 'Spec' | 'Status'): Record<string, DeclaredType> => ({
  [`NodeDisruptionPolicy${suffix}File`]: {
    about: 'The policy of a file.',
    fields: {
      path: ['!string', 'Absolute path of the file.'],
      actions: [`![]#NodeDisruptionPolicy${suffix}Action`, 'Steps, in their order.'],
    },
  },
  [`NodeDisruptionPolicy${suffix}Unit`]: {
    about: 'The policy of a systemd unit.',
    fields: {
      name: ['!string', 'Name of the unit, with its suffix.'],
      actions: [`![]#NodeDisruptionPolicy${suffix}Action`, 'Steps, in their order.'],
    },
  },
  [`NodeDisruptionPolicy${suffix}SSHKey`]: {
    about: 'The policy of SSH keys.',
    fields: { actions: [`![]#NodeDisruptionPolicy${suffix}Action`, 'Steps, in their order.'] },
  },
  [`NodeDisruptionPolicy${suffix}Action`]: actionOf(`NodeDisruptionPolicy${suffix}Action`),
});

const parts = (suffix: 'Spec' | 'Status'): DeclaredType['fields'] => ({
  files: [`[]#NodeDisruptionPolicy${suffix}File`, 'Policies of files.'],
  units: [`[]#NodeDisruptionPolicy${suffix}Unit`, 'Policies of units.'],
  sshkey: [`#NodeDisruptionPolicy${suffix}SSHKey`, 'The policy of SSH keys.'],
});

const { MachineConfiguration, MachineConfigurationSpec } = staticPodKind(
  'MachineConfiguration',
  'MachineConfiguration configures how machine configurations are applied.',
  {
    nodeDisruptionPolicy: [
      '#NodeDisruptionPolicyConfig',
      'Actions on a node after a change of a file, unit or SSH key.',
    ],
  },
) as Record<'MachineConfiguration' | 'MachineConfigurationSpec', DeclaredType>;

export const machineConfigurationTypes: Readonly<Record<string, DeclaredType>> = {
  MachineConfiguration,
  MachineConfigurationSpec,
  MachineConfigurationStatus: {
    about: 'MachineConfigurationStatus is what is observed.',
    fields: {
      observedGeneration: ['int64', 'Generation of the spec that was seen last.'],
      conditions: ['[]#meta.Condition', 'The state.'],
      nodeDisruptionPolicyStatus: ['#NodeDisruptionPolicyStatus', 'The policies in force, with those of the cluster.'],
    },
  },
  NodeDisruptionPolicyConfig: {
    about: 'NodeDisruptionPolicyConfig holds the policies of administrators.',
    fields: parts('Spec'),
  },
  NodeDisruptionPolicyStatus: {
    about: 'NodeDisruptionPolicyStatus holds the policies in force.',
    fields: { clusterPolicies: ['#NodeDisruptionPolicyClusterStatus', 'The policies.'] },
  },
  NodeDisruptionPolicyClusterStatus: {
    about: 'NodeDisruptionPolicyClusterStatus is the policies of the cluster merged with those of administrators.',
    fields: parts('Status'),
  },
  ...policiesOf('Spec'),
  ...policiesOf('Status'),
  ReloadService: {
    about: 'ReloadService names a unit that is reloaded.',
    fields: { serviceName: ['!string', 'Name of the unit, with its suffix.'] },
  },
  RestartService: {
    about: 'RestartService names a unit that is restarted.',
    fields: { serviceName: ['!string', 'Name of the unit, with its suffix.'] },
  },
};

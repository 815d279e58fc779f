/** Section `machineConfig` of the bootstrap file, with the settings of the machine config daemon on this host. */
import { object, type Parsed, string } from '../../../wire/strict-yaml.ts';

export const machineConfigField = () =>
  object({ sshUser: string({ pattern: /^[a-z_][a-z0-9_-]{0,31}$/, fix: 'give the name of an account of this host' }) });

type MachineConfigFile = Parsed<
  { machineConfig: ReturnType<typeof machineConfigField> },
  'machineConfig'
>['machineConfig'];

export interface MachineConfigSettings {
  /** Account to which SSH keys of MachineConfigs are added. It has the role of OpenShift's account `core`. */
  readonly sshUser: string;
}

export const machineConfigOf = (file: MachineConfigFile | undefined): MachineConfigSettings => ({
  sshUser: file?.sshUser ?? 'core',
});

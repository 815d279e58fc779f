import type { RigAccess, RigTarget } from '../../../host/commands/rigs.ts';
import { type Flag, type FlagValues, ROOT_FLAG, stringFlag } from '../../command.ts';

export const ACCESS: Readonly<Record<string, Flag>> = {
  kubeconfig: { type: 'string', value: 'FILE', help: 'credentials (default KUBECONFIG, then those of this host)' },
  root: ROOT_FLAG,
};

export const NAMESPACE: Flag = {
  type: 'string',
  short: 'n',
  value: 'NAME',
  help: 'namespace of the claim (default default)',
};

export const RIG: Flag = {
  type: 'boolean',
  help: 'the name is the name of a rig instead of a claim; for administrators',
};

export const accessOf = (flags: FlagValues): RigAccess => ({
  kubeconfig: stringFlag(flags, 'kubeconfig'),
  root: stringFlag(flags, 'root'),
});

export const namespaceOf = (flags: FlagValues): string => stringFlag(flags, 'namespace') ?? 'default';

export const targetOf = (flags: FlagValues, name = ''): RigTarget => ({
  name,
  namespace: namespaceOf(flags),
  isRig: flags['rig'] === true,
});

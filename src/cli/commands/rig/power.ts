import { type Command, UsageError } from '../../command.ts';
import { ACCESS, accessOf, NAMESPACE, RIG, targetOf } from './rig-access.ts';

export const rigPowerCommand: Command = {
  name: 'rig power',
  usage: 'on|off|cycle CLAIM [-n NAMESPACE] [--rig]',
  summary: 'switch the board of the rig that is granted to a claim',
  flags: { namespace: NAMESPACE, rig: RIG, ...ACCESS },
  arguments: [2, 2],
  values: [['on', 'off', 'cycle'], 'rig-claim'],
  examples: [['Switch off and on', 'rig power cycle nightly']],
  run: async ({ flags, positionals: [action, name = ''], out }) => {
    if (action !== 'on' && action !== 'off' && action !== 'cycle')
      throw new UsageError(`rig power ${action ?? ''}: give on, off or cycle before the name of the claim`);
    const { switchRig } = await import('../../../host/commands/rigs.ts');
    const output = await switchRig(accessOf(flags), targetOf(flags, name), action);
    out.stdout(output === '' ? `${name} switched ${action}\n` : `${output}\n`);
    return 0;
  },
};

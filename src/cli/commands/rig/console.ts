import type { Command } from '../../command.ts';
import { ACCESS, accessOf, NAMESPACE, RIG, targetOf } from './rig-access.ts';

export const rigConsoleCommand: Command = {
  name: 'rig console',
  usage: 'CLAIM [-n NAMESPACE] [--rig]',
  summary: 'open the serial console of the rig that is granted to a claim; Ctrl-] closes it',
  description: 'The node records the output of the board below /var/log/origin/rigs/<rig>.',
  flags: { namespace: NAMESPACE, rig: RIG, ...ACCESS },
  arguments: [1, 1],
  values: ['rig-claim'],
  examples: [
    ['Console of a claim’s rig', 'rig console nightly'],
    ['Console of a rig, as an administrator', 'rig console board-1 --rig'],
  ],
  run: async ({ flags, positionals: [name = ''] }) => {
    const { openConsole } = await import('../../../host/commands/rigs.ts');
    await openConsole(accessOf(flags), targetOf(flags, name));
    return 0;
  },
};

import type { Command } from '../../command.ts';
import { OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';
import { ACCESS, accessOf } from './rig-access.ts';

const NONE = '<none>';

export const rigHistoryCommand: Command = {
  name: 'rig history',
  usage: 'RIG [-o json|yaml]',
  summary: 'list the last uses of a rig, newest first',
  description: 'The history has at most 50 uses. A use without an end is that of the current holder.',
  flags: { output: OUTPUT_FLAG, ...ACCESS },
  arguments: [1, 1],
  values: ['rig'],
  examples: [['Uses of a rig', 'rig history bench-1']],
  run: async ({ flags, positionals: [name = ''], out }) => {
    const { rigHistory } = await import('../../../host/commands/rigs.ts');
    const uses = await rigHistory(accessOf(flags), name);
    const rows = uses.map((use) => [
      `${use.namespace ?? ''}/${use.name ?? ''}`,
      use.requester ?? NONE,
      use.node ?? NONE,
      use.grantedAt ?? NONE,
      use.endedAt ?? NONE,
      use.reason ?? 'InUse',
    ]);
    const header = ['CLAIM', 'REQUESTER', 'NODE', 'GRANTED', 'ENDED', 'STATE'];
    out.stdout((await printDocument(flags, uses)) ?? printTable(header, rows));
    return 0;
  },
};

import type { Command } from '../../command.ts';
import { OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';
import { ACCESS, accessOf } from './rig-access.ts';

const NONE = '<none>';

export const rigListCommand: Command = {
  name: 'rig list',
  usage: '[-o json|yaml]',
  summary: 'list the rigs with their holders and queues',
  flags: { output: OUTPUT_FLAG, ...ACCESS },
  arguments: [0, 0],
  examples: [['All rigs', 'rig list']],
  run: async ({ flags, out }) => {
    const { listRigs } = await import('../../../host/commands/rigs.ts');
    const rigs = await listRigs(accessOf(flags));
    const rows = rigs.map(({ metadata, spec, status }) => [
      metadata?.name ?? '',
      status?.node ?? spec?.node ?? NONE,
      status?.holder === undefined ? NONE : `${status.holder.namespace}/${status.holder.name}`,
      String(status?.queue ?? 0),
      status?.expiresAt ?? NONE,
    ]);
    out.stdout((await printDocument(flags, rigs)) ?? printTable(['NAME', 'NODE', 'HOLDER', 'QUEUE', 'EXPIRES'], rows));
    return 0;
  },
};

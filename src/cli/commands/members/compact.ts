import { bytesText } from '../../../base/text/bytes-text.ts';
import type { Command } from '../../command.ts';
import { printDocument, printTable } from '../../printers.ts';
import { keepAliveDuring, storeAccess } from '../../store-flags.ts';
import { FLAGS } from './store-access.ts';

export const membersCompactCommand: Command = {
  name: 'members compact',
  usage: '[-o json|yaml]',
  summary: 'remove the store’s history, return free pages and clear the NOSPACE alarm',
  description:
    'The store and its API server do this by themselves; use it after the alarm NOSPACE. Objects are not changed. If the\n' +
    'objects alone exceed quota-backend-bytes, the next write raises the alarm again.',
  flags: FLAGS,
  arguments: [0, 0],
  examples: [['After the alarm NOSPACE', 'members compact']],
  run: async ({ flags, out }) => {
    const { compactStore } = await import('../../../host/store/administration.ts');
    const compacted = await keepAliveDuring(compactStore(await storeAccess(flags)));
    const rows = compacted.members.map(({ name, beforeBytes, afterBytes }) => [
      name,
      bytesText(beforeBytes),
      bytesText(afterBytes),
    ]);
    out.stdout((await printDocument(flags, compacted)) ?? printTable(['NAME', 'BEFORE', 'AFTER'], rows));
    return 0;
  },
};

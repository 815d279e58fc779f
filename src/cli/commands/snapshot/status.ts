import { bytesText } from '../../../base/text/bytes-text.ts';
import type { Command } from '../../command.ts';
import { OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';

export const snapshotStatusCommand: Command = {
  name: 'snapshot status',
  usage: 'FILE [-o json|yaml]',
  summary: 'verify every row of a snapshot and show its content',
  flags: { output: OUTPUT_FLAG },
  arguments: [1, 1],
  values: ['snapshot'],
  examples: [['Check a snapshot', 'snapshot status /backup/store.db']],
  run: async ({ flags, positionals, out }) => {
    const { snapshotStatus } = await import('../../../host/store/administration.ts');
    const status = await snapshotStatus(positionals[0] ?? '');
    const { revision, compacted, keys, revisions, hash, bytes, sha256, memberId } = status;
    const lines = printTable(
      ['REVISION', 'COMPACTED', 'KEYS', 'ROWS', 'HASH', 'SIZE', 'FROM MEMBER'],
      [[...[revision, compacted, keys, revisions].map(String), hash, bytesText(bytes), memberId]],
    );
    out.stdout((await printDocument(flags, status)) ?? `${lines}sha256 ${sha256}\n`);
    return 0;
  },
};

import { type Command, stringFlag, UsageError } from '../../command.ts';
import { checkFormat, OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';
import { ACCESS, accessOf } from './rig-access.ts';

export const rigRecordingsCommand: Command = {
  name: 'rig recordings',
  usage: 'RIG [FILE [--node NODE]] [-o json|yaml]',
  summary: 'list the recordings of a rig’s consoles, or print one of them: for administrators',
  description:
    'The list has the recordings on the present node of the rig and on the nodes of its last uses. The exit code is 1 if one of them cannot be listed. A terminal shows control characters as escapes. A file or a pipe receives the recording unchanged.',
  flags: {
    output: OUTPUT_FLAG,
    node: { type: 'string', value: 'NODE', values: 'node', help: 'node of the file (default the one that has it)' },
    ...ACCESS,
  },
  arguments: [1, 2],
  values: ['rig'],
  examples: [
    ['Recordings of a rig, newest first', 'rig recordings bench-1'],
    ['Print one', 'rig recordings bench-1 2026-11-26T042600-000Z.log'],
  ],
  run: async ({ flags, positionals: [name = '', file], out }) => {
    checkFormat(flags);
    const { listRecordings, printRecording } = await import('../../../host/commands/rigs.ts');
    const node = stringFlag(flags, 'node');
    if (file !== undefined) {
      if (flags['output'] !== undefined) throw new UsageError('rig recordings: -o is for the list, not for a file');
      await printRecording(accessOf(flags), { name, file, node });
      return 0;
    }
    if (node !== undefined) throw new UsageError('rig recordings: --node is for a file, not for the list');
    const { items, failures } = await listRecordings(accessOf(flags), name);
    const rows = items.map(({ name: each, node: on = '<none>', start, bytes, isOpen }) => [
      each,
      on,
      start,
      String(bytes),
      isOpen ? 'recording' : 'closed',
    ]);
    out.stdout((await printDocument(flags, items)) ?? printTable(['FILE', 'NODE', 'START', 'BYTES', 'STATE'], rows));
    for (const failure of failures) out.stderr(`hyperedge: node ${failure.node}: ${failure.message}\n`);
    return failures.length === 0 ? 0 : 1;
  },
};

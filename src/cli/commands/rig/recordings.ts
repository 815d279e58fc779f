import { type Command, UsageError } from '../../command.ts';
import { checkFormat, OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';
import { ACCESS, accessOf } from './access.ts';

export const rigRecordingsCommand: Command = {
  name: 'rig recordings',
  usage: 'RIG [FILE] [-o json|yaml]',
  summary: 'list the recordings of a rig’s consoles, or print one of them: for administrators',
  description: 'A terminal shows control characters as escapes. A file or a pipe receives the recording unchanged.',
  flags: { output: OUTPUT_FLAG, ...ACCESS },
  arguments: [1, 2],
  values: ['rig'],
  examples: [
    ['Recordings of a rig, newest first', 'rig recordings bench-1'],
    ['Print one', 'rig recordings bench-1 2026-11-26T042600-000Z.log'],
  ],
  run: async ({ flags, positionals: [name = '', file], out }) => {
    checkFormat(flags);
    const { listRecordings, printRecording } = await import('../../../host/commands/rigs.ts');
    if (file !== undefined) {
      if (flags['output'] !== undefined) throw new UsageError('rig recordings: -o is for the list, not for a file');
      await printRecording(accessOf(flags), name, file);
      return 0;
    }
    const recordings = await listRecordings(accessOf(flags), name);
    const rows = recordings.map(({ name: each, start, bytes, isOpen }) => [
      each,
      start,
      String(bytes),
      isOpen ? 'recording' : 'closed',
    ]);
    out.stdout((await printDocument(flags, recordings)) ?? printTable(['FILE', 'START', 'BYTES', 'STATE'], rows));
    return 0;
  },
};

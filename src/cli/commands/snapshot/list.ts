import { existsSync } from 'node:fs';
import { bytesText } from '../../../base/text/bytes-text.ts';
import { type Command, ROOT_FLAG, stringFlag, UsageError } from '../../command.ts';
import { OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';
import { DIRECTORY_FLAG, directoryOf } from './directory.ts';

export const snapshotListCommand: Command = {
  name: 'snapshot list',
  usage: '[-o json|yaml|wide]',
  summary: 'list and verify the snapshots of this host, newest first',
  flags: { output: OUTPUT_FLAG, directory: DIRECTORY_FLAG, root: ROOT_FLAG },
  arguments: [0, 0],
  examples: [['Snapshots of this host', 'snapshot list']],
  run: async ({ flags, out }) => {
    const { listSnapshots } = await import('../../../host/store/administration.ts');
    const directory = await directoryOf(flags);
    if (stringFlag(flags, 'directory') !== undefined && !existsSync(directory))
      throw new UsageError(`--directory=${directory}: does not exist; give the directory of the snapshots`);
    const found = await listSnapshots(directory, { verify: true });
    const document = await printDocument(
      flags,
      found.map(({ takenMs, ...each }) => ({ ...each, used: new Date(takenMs).toISOString() })),
    );
    const rows = found.map(({ file, revision, takenMs, bytes, problem }) => [
      file,
      String(revision),
      ageOf(Date.now() - takenMs),
      bytesText(bytes),
      problem === '' ? 'yes' : 'NO',
    ]);
    out.stdout(document ?? printTable(['FILE', 'REVISION', 'AGE', 'SIZE', 'VERIFIED'], rows));
    for (const { problem } of found) if (problem !== '') out.stderr(`hyperedge: ${problem}\n`);
    return found.every(({ problem }) => problem === '') ? 0 : 1;
  },
};

function ageOf(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`;
}

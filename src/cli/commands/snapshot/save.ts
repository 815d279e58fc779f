import { type OnProgress, transferring } from '../../../base/command-line/progress.ts';
import { bytesText } from '../../../base/text/bytes-text.ts';
import { type Command, integerFlag, UsageError } from '../../command.ts';
import { OUTPUT_FLAG, printDocument } from '../../printers.ts';
import { keepAliveDuring, STORE_FLAGS, storeAccess } from '../../store-flags.ts';
import { DIRECTORY_FLAG, directoryOf } from './directory.ts';

export const snapshotSaveCommand: Command = {
  name: 'snapshot save',
  usage: '[FILE] [-o json|yaml]',
  summary: 'save a snapshot of the running store',
  description: 'Verifies its SHA-256 and writes it with mode 0600. Default: a new file in the snapshot directory.',
  flags: {
    'if-changed': { type: 'boolean', help: 'only if the newest snapshot has another revision' },
    keep: { type: 'string', value: 'N', help: 'then remove all but the N newest snapshots' },
    output: OUTPUT_FLAG,
    directory: DIRECTORY_FLAG,
    ...STORE_FLAGS,
  },
  arguments: [0, 1],
  values: ['file'],
  examples: [
    ['Save into the snapshot directory and keep eight', 'snapshot save --keep 8'],
    ['Save to a file', 'snapshot save /backup/store.db'],
  ],
  run: async ({ flags, positionals, out, progress }) => {
    const { isUnchanged, pruneSnapshots, saveSnapshot } = await import('../../../host/store/administration.ts');
    const [file] = positionals;
    const keep = integerFlag(flags, 'keep', 1, 1000);
    const ifChanged = flags['if-changed'] === true;
    if (file !== undefined && (keep !== undefined || ifChanged))
      throw new UsageError('--keep and --if-changed apply to the snapshot directory; omit FILE');
    const directory = await directoryOf(flags);
    const target = file === undefined ? { directory } : { file };
    const admin = (await storeAccess(flags)).open();
    try {
      if (ifChanged && (await keepAliveDuring(isUnchanged(admin, directory)))) {
        out.stdout('unchanged since the newest snapshot\n');
        return 0;
      }
      const save = (onProgress: OnProgress) => keepAliveDuring(saveSnapshot(admin, target, Date.now(), onProgress));
      const saved = await transferring(progress, 'saving the snapshot', save);
      if (keep !== undefined) await pruneSnapshots(directory, keep, saved.file);
      const document = await printDocument(flags, saved);
      out.stdout(document ?? `${saved.file}: revision ${saved.revision}, ${bytesText(saved.bytes)}\n`);
      return 0;
    } finally {
      admin.close();
    }
  },
};

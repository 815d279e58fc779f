import { transferring } from '../../../base/command-line/progress.ts';
import { type Command, stringFlag, UsageError } from '../../command.ts';
import { OUTPUT_FLAG, printDocument } from '../../printers.ts';
import { keepAliveDuring, STORE_FLAGS, storeAccess } from '../../store-flags.ts';

export const snapshotPushCommand: Command = {
  name: 'snapshot push',
  usage: 'FILE --endpoints URLS [--overwrite]',
  summary: 'write a snapshot into a running etcd through its API',
  description:
    'Kept: keys, values, leases with their ids and full time. Not kept: revisions, versions, history, users and roles.',
  flags: {
    overwrite: { type: 'boolean', help: 'write even if the target store has keys' },
    output: OUTPUT_FLAG,
    ...STORE_FLAGS,
  },
  arguments: [1, 1],
  values: ['snapshot'],
  examples: [['Fill an empty etcd', 'snapshot push /backup/store.db --endpoints https://10.0.0.9:2379']],
  run: async ({ flags, positionals: [file = ''], out, progress }) => {
    if (stringFlag(flags, 'endpoints') === undefined) throw new UsageError('snapshot push: give --endpoints');
    const { pushSnapshot } = await import('../../../host/store/administration.ts');
    const admin = (await storeAccess(flags)).open();
    try {
      const overwrite = flags['overwrite'] === true;
      const pushed = await transferring(
        progress,
        `pushing ${file}`,
        (onProgress) => keepAliveDuring(pushSnapshot(file, admin, overwrite, onProgress)),
        'keys',
      );
      const document = await printDocument(flags, pushed);
      out.stdout(document ?? `${pushed.keys} keys and ${pushed.leases} leases written; revision ${pushed.revision}\n`);
      return 0;
    } finally {
      admin.close();
    }
  },
};

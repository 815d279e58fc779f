import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { OUTPUT_FLAG, printDocument } from '../../printers.ts';

export const secretsEncryptReencryptCommand: Command = {
  name: 'secrets-encrypt reencrypt',
  usage: '[--drop-old-keys] [-o json|yaml]',
  summary: 'rewrite every object that is not stored with the current write key',
  flags: {
    'drop-old-keys': {
      type: 'boolean',
      help: 'then remove the former keys from the file; snapshots that are encrypted with the former keys can then not be read with this file',
    },
    output: OUTPUT_FLAG,
    root: ROOT_FLAG,
  },
  arguments: [0, 0],
  examples: [['Rewrite, then remove the former keys', 'secrets-encrypt reencrypt --drop-old-keys']],
  run: async ({ flags, out }) => {
    const { dropOldKeys, scanStore } = await import('../../../host/apiserver/secrets-encrypt.ts');
    const root = stringFlag(flags, 'root');
    const report = await scanStore(root, { rewrite: true });
    const { rewritten, unreadable, file } = report;
    out.stdout((await printDocument(flags, { file, rewritten, unreadable })) ?? `${rewritten} objects rewritten\n`);
    for (const key of report.unreadable) out.stderr(`no key for ${key}: not rewritten\n`);
    if (report.unreadable.length > 0) return 1;
    if (flags['drop-old-keys'] === true) {
      const after = await scanStore(root, { rewrite: false });
      if (after.forms.some(({ current }) => !current)) {
        out.stderr(
          'an API server still writes with a former key; the keys are kept. Copy the file to every API server and run this again\n',
        );
        return 1;
      }
      await dropOldKeys(root);
      if (flags['output'] === undefined) out.stdout(`former keys removed from ${report.file}\n`);
    }
    return 0;
  },
};

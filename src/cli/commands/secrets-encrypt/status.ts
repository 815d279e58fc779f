import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';

const OFF =
  'Encryption at rest is off: all objects are stored as plain text. To turn it on, set secretsEncryption in the\n' +
  'bootstrap file, and restart the host process and the API server.\n';

export const secretsEncryptStatusCommand: Command = {
  name: 'secrets-encrypt status',
  usage: '[-o json|yaml]',
  summary: 'show how stored objects are encrypted',
  flags: { output: OUTPUT_FLAG, root: ROOT_FLAG },
  arguments: [0, 0],
  examples: [['Encryption of stored objects', 'secrets-encrypt status']],
  run: async ({ flags, out }) => {
    const { isEncryptionConfigured, scanStore } = await import('../../../host/apiserver/secrets-encrypt.ts');
    const root = stringFlag(flags, 'root');
    if (!(await isEncryptionConfigured(root))) {
      out.stdout((await printDocument(flags, { configured: false })) ?? OFF);
      return 0;
    }
    const report = { configured: true, ...(await scanStore(root, { rewrite: false })) };
    const document = await printDocument(flags, report);
    out.stdout(
      document ??
        `configuration ${report.file}\n\n${printTable(
          ['RESOURCE', 'STORED AS', 'OBJECTS', 'CURRENT'],
          report.forms.map(({ resource, form, objects, current }) => [
            resource,
            form === '' ? 'plain' : form,
            String(objects),
            current ? 'yes' : 'no: run hyperedge secrets-encrypt reencrypt',
          ]),
        )}`,
    );
    for (const key of report.unreadable) out.stderr(`no key for ${key}\n`);
    return report.unreadable.length > 0 ? 1 : 0;
  },
};

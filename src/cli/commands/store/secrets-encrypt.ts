import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { checkFormat, OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';

export const encryptionStatusCommand: Command = {
  usage: 'secrets-encrypt status [-o json|yaml]',
  summary: 'Shows how stored objects are encrypted.',
  flags: { output: OUTPUT_FLAG, root: ROOT_FLAG },
  arguments: [0, 0],
  run: async ({ flags, out }) => {
    checkFormat(flags);
    const { surveyStore } = await import('../../../host/apiserver/secrets-encrypt.ts');
    const report = await surveyStore(stringFlag(flags, 'root'), false);
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

export const rotateEncryptionCommand: Command = {
  usage: 'secrets-encrypt rotate [--prepare]',
  summary: 'Adds a new write key; the former keys still decrypt.',
  description:
    'With several API servers: rotate --prepare on one, copy the file to all, then rotate and copy it again. Each API server reloads its file within seconds.',
  flags: {
    prepare: { type: 'boolean', help: 'add the new key second: it decrypts and does not encrypt yet' },
    root: ROOT_FLAG,
  },
  arguments: [0, 0],
  run: async ({ flags, out }) => {
    const { rotateKey } = await import('../../../host/apiserver/secrets-encrypt.ts');
    const { file, key } = await rotateKey(stringFlag(flags, 'root'), flags['prepare'] === true);
    out.stdout(
      flags['prepare'] === true
        ? `${key} is prepared in ${file}; run hyperedge secrets-encrypt rotate when every API server has the file\n`
        : `${key} in ${file} is the write key; run hyperedge secrets-encrypt reencrypt for existing objects\n`,
    );
    return 0;
  },
};

export const reencryptCommand: Command = {
  usage: 'secrets-encrypt reencrypt [--drop-old-keys]',
  summary: 'Rewrites every object that is not stored with the current write key.',
  flags: {
    'drop-old-keys': {
      type: 'boolean',
      help: 'then remove the former keys from the file; snapshots encrypted with them cannot be read with it',
    },
    root: ROOT_FLAG,
  },
  arguments: [0, 0],
  run: async ({ flags, out }) => {
    const { dropOldKeys, surveyStore } = await import('../../../host/apiserver/secrets-encrypt.ts');
    const root = stringFlag(flags, 'root');
    const report = await surveyStore(root, true);
    out.stdout(`${report.rewritten} objects rewritten\n`);
    for (const key of report.unreadable) out.stderr(`no key for ${key}: not rewritten\n`);
    if (report.unreadable.length > 0) return 1;
    if (flags['drop-old-keys'] === true) {
      const after = await surveyStore(root, false);
      if (after.forms.some(({ current }) => !current)) {
        out.stderr(
          'an API server still writes with a former key; the keys are kept. Copy the file to every API server and run this again\n',
        );
        return 1;
      }
      await dropOldKeys(root);
      out.stdout(`former keys removed from ${report.file}\n`);
    }
    return 0;
  },
};

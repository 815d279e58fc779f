import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { OUTPUT_FLAG, printDocument } from '../../printers.ts';

export const secretsEncryptRotateCommand: Command = {
  name: 'secrets-encrypt rotate',
  usage: '[--prepare] [-o json|yaml]',
  summary: 'add a new write key; the former keys still decrypt',
  description:
    'With several API servers: rotate --prepare on one, copy the file to all, then rotate and copy it again. Each API server reloads its file within seconds.',
  flags: {
    prepare: { type: 'boolean', help: 'add the new key second: it decrypts and does not encrypt yet' },
    output: OUTPUT_FLAG,
    root: ROOT_FLAG,
  },
  arguments: [0, 0],
  examples: [['Rotate the key of a single master', 'secrets-encrypt rotate']],
  run: async ({ flags, out }) => {
    const { rotateKey } = await import('../../../host/apiserver/secrets-encrypt.ts');
    const { file, key } = await rotateKey(stringFlag(flags, 'root'), flags['prepare'] === true);
    const line =
      flags['prepare'] === true
        ? `${key} is prepared in ${file}; run hyperedge secrets-encrypt rotate when every API server has the file\n`
        : `${key} in ${file} is the write key; run hyperedge secrets-encrypt reencrypt for existing objects\n`;
    out.stdout((await printDocument(flags, { file, key, prepared: flags['prepare'] === true })) ?? line);
    return 0;
  },
};

import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';

export const secretsEncryptRotateCommand: Command = {
  name: 'secrets-encrypt rotate',
  usage: '[--prepare]',
  summary: 'add a new write key; the former keys still decrypt',
  description:
    'With several API servers: rotate --prepare on one, copy the file to all, then rotate and copy it again. Each API server reloads its file within seconds.',
  flags: {
    prepare: { type: 'boolean', help: 'add the new key second: it decrypts and does not encrypt yet' },
    root: ROOT_FLAG,
  },
  arguments: [0, 0],
  examples: [['Rotate the key of a single master', 'secrets-encrypt rotate']],
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

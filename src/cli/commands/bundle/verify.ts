import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { load } from './releases.ts';

export const bundleVerifyCommand: Command = {
  name: 'bundle verify',
  usage: 'FILE [--key KEY]',
  summary: 'check the signature of a release and the digest of each of its files',
  flags: {
    key: { type: 'string', value: 'FILE', help: 'a public key instead of updates.keys of the bootstrap file' },
    root: ROOT_FLAG,
  },
  arguments: [1, 1],
  values: ['file'],
  examples: [['Check a file with a public key', 'bundle verify release.bundle --key release.pub']],
  run: async ({ flags, positionals: [bundle = ''], out }) => {
    const options = { key: stringFlag(flags, 'key'), root: stringFlag(flags, 'root') };
    const { manifest, digest } = await (await load()).verifyBundle(bundle, options);
    const { version, kubernetes, files } = manifest;
    const architectures = files.map((each) => each.architecture).join(', ');
    out.stdout(`${bundle}: release ${version} (Kubernetes ${kubernetes}) for ${architectures}, sha256:${digest}\n`);
    return 0;
  },
};

import { transferring } from '../../../base/command-line/progress.ts';
import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { OUTPUT_FLAG, printDocument } from '../../printers.ts';
import { load } from './releases.ts';

export const bundleVerifyCommand: Command = {
  name: 'bundle verify',
  usage: 'FILE [--key KEY] [-o json|yaml]',
  summary: 'check the signature of a release and the digest of each of its files',
  flags: {
    key: { type: 'string', value: 'FILE', help: 'a public key instead of updates.keys of the bootstrap file' },
    output: OUTPUT_FLAG,
    root: ROOT_FLAG,
  },
  arguments: [1, 1],
  values: ['file'],
  examples: [['Check a file with a public key', 'bundle verify release.bundle --key release.pub']],
  run: async ({ flags, positionals: [bundle = ''], out, progress }) => {
    const options = { key: stringFlag(flags, 'key'), root: stringFlag(flags, 'root') };
    const { verifyBundle } = await load();
    const { manifest, digest } = await transferring(progress, `verifying ${bundle}`, (onProgress) =>
      verifyBundle(bundle, options, onProgress),
    );
    const { version, kubernetes, files } = manifest;
    const architectures = files.map((each) => each.architecture).join(', ');
    const line = `${bundle}: release ${version} (Kubernetes ${kubernetes}) for ${architectures}, sha256:${digest}\n`;
    out.stdout((await printDocument(flags, { ...manifest, sha256: digest })) ?? line);
    return 0;
  },
};

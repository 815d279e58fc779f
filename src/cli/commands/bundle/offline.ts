import { transferring } from '../../../base/command-line/progress.ts';
import { countText } from '../../../base/text/count-text.ts';
import { type Command, stringFlag, UsageError } from '../../command.ts';
import { OUTPUT_FLAG, printDocument } from '../../printers.ts';
import { load, required } from './releases.ts';

export const bundleOfflineCommand: Command = {
  name: 'bundle offline',
  usage: 'FILE --key KEY [--x64 EXECUTABLE] [--arm64 EXECUTABLE] [--images FILE]… [--manifests FILE]…',
  summary: 'write one signed file with everything that install --from needs without a network',
  description:
    'Executables, packages and images of a site, manifests for the deploy directory of masters, and the parameters of\n' +
    'a join. KEY is an Ed25519 private key in PEM; hosts are given its public half: install --from FILE --key PUBLIC.',
  flags: {
    key: { type: 'string', value: 'FILE', help: 'the private key that signs' },
    x64: { type: 'string', value: 'FILE', help: 'the executable for x64' },
    arm64: { type: 'string', value: 'FILE', help: 'the executable for arm64' },
    packages: {
      type: 'string',
      multiple: true,
      value: 'FILE',
      help: 'a Debian package, such as hyperedge_1.0.0_amd64.deb',
    },
    images: { type: 'string', multiple: true, value: 'FILE', help: 'an image archive, as for hyperedge image import' },
    manifests: { type: 'string', multiple: true, value: 'FILE', help: 'a manifest for the deploy directory' },
    join: { type: 'string', value: 'URL', help: 'API server of the cluster to which the hosts belong' },
    token: { type: 'string', value: 'TOKEN', help: 'token of hyperedge token create; makes the bundle a secret' },
    'ca-hash': { type: 'string', value: 'HASH', help: 'hash of the cluster’s CA' },
    output: OUTPUT_FLAG,
  },
  arguments: [1, 1],
  values: ['file'],
  examples: [
    [
      'A bundle of a site',
      'bundle offline site.bundle --key release.key --x64 hyperedge --images app.tar --manifests app.yaml',
    ],
  ],
  run: async ({ flags, positionals: [bundle = ''], out, progress }) => {
    const list = (name: string): string[] => {
      const value = flags[name];
      return Array.isArray(value) ? value.map(String) : [];
    };
    const executables = new Map<string, string>();
    for (const architecture of ['x64', 'arm64']) {
      const path = stringFlag(flags, architecture);
      if (path !== undefined) executables.set(architecture, path);
    }
    if (executables.size === 0) throw new UsageError('--x64, --arm64: give at least one executable');
    const [server, token, caHash] = ['join', 'token', 'ca-hash'].map((name) => stringFlag(flags, name));
    const given = [server, token, caHash].filter((each) => each !== undefined).length;
    if (given !== 0 && given !== 3)
      throw new UsageError('give --join, --token and --ca-hash together, as hyperedge token create prints them');
    const { createOfflineBundle } = await load();
    const options = {
      bundle,
      key: required(flags, 'key'),
      executables,
      packages: list('packages'),
      images: list('images'),
      manifests: list('manifests'),
      join: server === undefined ? undefined : { server, token: token ?? '', caHash: caHash ?? '' },
    };
    const { version, files } = await transferring(progress, `writing ${bundle}`, (onProgress) =>
      createOfflineBundle(options, onProgress),
    );
    const secret = given === 0 ? '' : ', with a join token: keep it secret';
    // The summary does not print the token, which the manifest contains.
    const document = await printDocument(flags, { version, files, hasToken: given > 0 });
    out.stdout(document ?? `${bundle}: release ${version}, ${countText(files.length, 'file')}${secret}\n`);
    return 0;
  },
};

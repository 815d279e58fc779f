import { transferring } from '../../../base/command-line/progress.ts';
import { type Command, stringFlag, UsageError } from '../../command.ts';
import { OUTPUT_FLAG, printDocument } from '../../printers.ts';
import { load, required } from './releases.ts';

export const bundleCreateCommand: Command = {
  name: 'bundle create',
  usage: 'FILE --key KEY [--x64 EXECUTABLE] [--arm64 EXECUTABLE] [-o json|yaml]',
  summary: 'write a release: a tar of executables with a signed manifest',
  description:
    'KEY is an Ed25519 private key in PEM: openssl genpkey -algorithm ed25519 -out release.key\n' +
    'Hosts trust its public half: openssl pkey -in release.key -pubout',
  flags: {
    key: { type: 'string', value: 'FILE', help: 'the private key that signs' },
    x64: { type: 'string', value: 'FILE', help: 'the executable for x64' },
    arm64: { type: 'string', value: 'FILE', help: 'the executable for arm64' },
    channel: { type: 'string', multiple: true, value: 'NAME', help: 'a channel that has the release; default: all' },
    version: { type: 'string', value: 'VERSION', help: 'version of executables that this host cannot run' },
    kubernetes: { type: 'string', value: 'VERSION', help: 'Kubernetes version of these executables' },
    output: OUTPUT_FLAG,
  },
  arguments: [1, 1],
  values: ['file'],
  examples: [['A release for x64', 'bundle create release.bundle --key release.key --x64 dist/hyperedge-linux-x64']],
  run: async ({ flags, positionals: [bundle = ''], out, progress }) => {
    const executables = new Map<string, string>();
    for (const architecture of ['x64', 'arm64']) {
      const path = stringFlag(flags, architecture);
      if (path !== undefined) executables.set(architecture, path);
    }
    if (executables.size === 0) throw new UsageError('--x64, --arm64: give at least one executable');
    const channels = flags['channel'];
    const { createBundle } = await load();
    const options = {
      bundle,
      key: required(flags, 'key'),
      executables,
      channels: Array.isArray(channels) ? channels.map(String) : [],
      version: stringFlag(flags, 'version'),
      kubernetes: stringFlag(flags, 'kubernetes'),
    };
    const manifest = await transferring(progress, `writing ${bundle}`, (onProgress) =>
      createBundle(options, onProgress),
    );
    const { version, files } = manifest;
    const line = `${bundle}: release ${version} for ${files.map((each) => each.architecture).join(', ')}\n`;
    out.stdout((await printDocument(flags, manifest)) ?? line);
    return 0;
  },
};

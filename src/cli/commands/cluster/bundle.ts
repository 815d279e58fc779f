import { type Command, type FlagValues, ROOT_FLAG, stringFlag, UsageError } from '../../command.ts';
import { OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';

const load = () => import('../../../host/openshift/release-bundles.ts');

function required(flags: FlagValues, name: string): string {
  const value = stringFlag(flags, name);
  if (value === undefined) throw new UsageError(`--${name}: is required`);
  return value;
}

export const createBundleCommand: Command = {
  usage: 'bundle create FILE --key KEY [--x64 EXECUTABLE] [--arm64 EXECUTABLE]',
  summary: 'Writes a release: a tar of executables with a signed manifest.',
  description:
    'KEY is an Ed25519 private key in PEM: openssl genpkey -algorithm ed25519 -out release.key\n' +
    'Hosts trust its public half: openssl pkey -in release.key -pubout',
  flags: {
    key: { type: 'string', value: 'FILE', help: 'the private key that signs' },
    x64: { type: 'string', value: 'FILE', help: 'the executable for x64' },
    arm64: { type: 'string', value: 'FILE', help: 'the executable for arm64' },
    channel: { type: 'string', multiple: true, value: 'NAME', help: 'a channel that has the release; default: all' },
    version: { type: 'string', value: 'VERSION', help: 'of executables that this host cannot run' },
    kubernetes: { type: 'string', value: 'VERSION', help: 'of executables that this host cannot run' },
  },
  arguments: [1, 1],
  run: async ({ flags, positionals: [bundle = ''], out }) => {
    const executables = new Map<string, string>();
    for (const architecture of ['x64', 'arm64']) {
      const path = stringFlag(flags, architecture);
      if (path !== undefined) executables.set(architecture, path);
    }
    if (executables.size === 0) throw new UsageError('--x64, --arm64: give an executable');
    const channels = flags['channel'];
    const { version, files } = await (await load()).createBundle({
      bundle,
      key: required(flags, 'key'),
      executables,
      channels: Array.isArray(channels) ? channels.map(String) : [],
      version: stringFlag(flags, 'version'),
      kubernetes: stringFlag(flags, 'kubernetes'),
    });
    out.stdout(`${bundle}: release ${version} for ${files.map((each) => each.architecture).join(', ')}\n`);
    return 0;
  },
};

export const offlineBundleCommand: Command = {
  usage: 'bundle offline FILE --key KEY [--x64 EXECUTABLE] [--arm64 EXECUTABLE] [--images FILE]… [--manifests FILE]…',
  summary: 'Writes one signed file with everything that hyperedge install --from needs without a network.',
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
  },
  arguments: [1, 1],
  run: async ({ flags, positionals: [bundle = ''], out }) => {
    const list = (name: string): string[] => {
      const value = flags[name];
      return Array.isArray(value) ? value.map(String) : [];
    };
    const executables = new Map<string, string>();
    for (const architecture of ['x64', 'arm64']) {
      const path = stringFlag(flags, architecture);
      if (path !== undefined) executables.set(architecture, path);
    }
    if (executables.size === 0) throw new UsageError('--x64, --arm64: give an executable');
    const [server, token, caHash] = ['join', 'token', 'ca-hash'].map((name) => stringFlag(flags, name));
    const given = [server, token, caHash].filter((each) => each !== undefined).length;
    if (given !== 0 && given !== 3)
      throw new UsageError('give --join, --token and --ca-hash together, as hyperedge token create prints them');
    const { createOfflineBundle } = await load();
    const { version, files } = await createOfflineBundle({
      bundle,
      key: required(flags, 'key'),
      executables,
      packages: list('packages'),
      images: list('images'),
      manifests: list('manifests'),
      join: server === undefined ? undefined : { server, token: token ?? '', caHash: caHash ?? '' },
    });
    out.stdout(
      `${bundle}: release ${version}, ${files.length} files${given === 0 ? '' : ', with a join token: keep it secret'}\n`,
    );
    return 0;
  },
};

export const verifyBundleCommand: Command = {
  usage: 'bundle verify FILE [--key KEY]',
  summary: 'Checks the signature of a release and the digest of each of its files.',
  flags: {
    key: { type: 'string', value: 'FILE', help: 'a public key instead of updates.keys of the bootstrap file' },
    root: ROOT_FLAG,
  },
  arguments: [1, 1],
  run: async ({ flags, positionals: [bundle = ''], out }) => {
    const options = { key: stringFlag(flags, 'key'), root: stringFlag(flags, 'root') };
    const { manifest, digest } = await (await load()).verifyBundle(bundle, options);
    const { version, kubernetes, files } = manifest;
    const architectures = files.map((each) => each.architecture).join(', ');
    out.stdout(`${bundle}: release ${version} (Kubernetes ${kubernetes}) for ${architectures}, sha256:${digest}\n`);
    return 0;
  },
};

export const importBundleCommand: Command = {
  usage: 'bundle import FILE [--force]',
  summary: 'Stores a release on this master and offers it to the cluster as an update.',
  description: 'Other masters and hosts fetch it from there. Start the update with oc adm upgrade --to VERSION.',
  flags: {
    force: { type: 'boolean', help: 'take a release that is older than the cluster' },
    root: ROOT_FLAG,
  },
  arguments: [1, 1],
  run: async ({ flags, positionals: [bundle = ''], out }) => {
    const options = { root: stringFlag(flags, 'root'), force: flags['force'] === true };
    const { manifest } = await (await load()).importBundle(bundle, options);
    out.stdout(`release ${manifest.version} is imported; start with: oc adm upgrade --to ${manifest.version}\n`);
    return 0;
  },
};

export const listBundlesCommand: Command = {
  usage: 'bundle list [-o json|yaml]',
  summary: 'Lists the releases that were imported into the cluster.',
  flags: { output: OUTPUT_FLAG, root: ROOT_FLAG },
  arguments: [0, 0],
  run: async ({ flags, out }) => {
    const releases = await (await load()).listReleases(stringFlag(flags, 'root'));
    const document = await printDocument(flags, releases);
    const rows = releases.map(({ version, kubernetes, architectures, channels, complete }) => [
      version,
      kubernetes,
      architectures.join(','),
      channels.join(',') || '<all>',
      complete ? 'yes' : 'no',
    ]);
    out.stdout(document ?? printTable(['VERSION', 'KUBERNETES', 'FOR', 'CHANNELS', 'HERE'], rows));
    return 0;
  },
};

export const removeBundleCommand: Command = {
  usage: 'bundle remove VERSION',
  summary: 'Takes a release back; masters remove its files.',
  flags: { root: ROOT_FLAG },
  arguments: [1, 1],
  run: async ({ flags, positionals: [version = ''], out }) => {
    await (await load()).removeRelease(stringFlag(flags, 'root'), version);
    out.stdout(`release ${version} is removed\n`);
    return 0;
  },
};

export const guardCommand: Command = {
  usage: 'update-guard',
  summary: 'Goes back to the former executable when an update does not become healthy; started by the service.',
  flags: { root: ROOT_FLAG },
  arguments: [0, 0],
  run: async ({ flags }) => {
    const { guardUpdate } = await import('../../../host/openshift/updates.ts');
    return guardUpdate(stringFlag(flags, 'root'));
  },
};

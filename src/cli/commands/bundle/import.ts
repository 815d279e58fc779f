import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { load } from './releases.ts';

export const bundleImportCommand: Command = {
  name: 'bundle import',
  usage: 'FILE [--force]',
  summary: 'store a release on this master and offer it to the cluster as an update',
  description: 'Other masters and hosts fetch it from there. Start the update with oc adm upgrade --to VERSION.',
  flags: {
    force: { type: 'boolean', help: 'take a release that is older than the cluster' },
    root: ROOT_FLAG,
  },
  arguments: [1, 1],
  values: ['file'],
  examples: [['Offer a release', 'bundle import release.bundle']],
  run: async ({ flags, positionals: [bundle = ''], out }) => {
    const options = { root: stringFlag(flags, 'root'), force: flags['force'] === true };
    const { manifest } = await (await load()).importBundle(bundle, options);
    out.stdout(`release ${manifest.version} is imported; start with: oc adm upgrade --to ${manifest.version}\n`);
    return 0;
  },
};

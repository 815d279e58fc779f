import { transferring } from '../../../base/command-line/progress.ts';
import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { OUTPUT_FLAG, printDocument } from '../../printers.ts';
import { load } from './releases.ts';

export const bundleImportCommand: Command = {
  name: 'bundle import',
  usage: 'FILE [--force] [-o json|yaml]',
  summary: 'store a release on this master and offer it to the cluster as an update',
  description: 'Other masters and hosts fetch it from there. Start the update with oc adm upgrade --to VERSION.',
  flags: {
    force: { type: 'boolean', help: 'accept a release that is older than the version of the cluster' },
    output: OUTPUT_FLAG,
    root: ROOT_FLAG,
  },
  arguments: [1, 1],
  values: ['file'],
  examples: [['Offer a release', 'bundle import release.bundle']],
  run: async ({ flags, positionals: [bundle = ''], out, progress }) => {
    const options = { root: stringFlag(flags, 'root'), force: flags['force'] === true };
    const { importBundle } = await load();
    const { manifest } = await transferring(progress, `importing ${bundle}`, (onProgress) =>
      importBundle(bundle, options, onProgress),
    );
    const line = `release ${manifest.version} is imported; start with: oc adm upgrade --to ${manifest.version}\n`;
    out.stdout((await printDocument(flags, manifest)) ?? line);
    return 0;
  },
};

import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';
import { load } from './releases.ts';

export const bundleListCommand: Command = {
  name: 'bundle list',
  usage: '[-o json|yaml]',
  summary: 'list the releases that were imported into the cluster',
  flags: { output: OUTPUT_FLAG, root: ROOT_FLAG },
  arguments: [0, 0],
  examples: [['Imported releases', 'bundle list']],
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

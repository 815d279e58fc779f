import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { load } from './releases.ts';

export const bundleRemoveCommand: Command = {
  name: 'bundle remove',
  usage: 'VERSION',
  summary: 'remove a release from the cluster; masters delete its files',
  flags: { root: ROOT_FLAG },
  arguments: [1, 1],
  examples: [['Remove a release', 'bundle remove 1.2.0']],
  run: async ({ flags, positionals: [version = ''], out }) => {
    await (await load()).removeRelease(stringFlag(flags, 'root'), version);
    out.stdout(`release ${version} is removed\n`);
    return 0;
  },
};

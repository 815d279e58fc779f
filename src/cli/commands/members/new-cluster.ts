import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { keepAliveDuring } from '../../store-flags.ts';

export const membersNewClusterCommand: Command = {
  name: 'members new-cluster',
  usage: '',
  summary: 'abandon a missing store: the next start creates a new cluster',
  description: `A host whose store is missing does not start: its file system may not be mounted. This command abandons the missing store;
all objects of the former cluster are lost. To keep them, run hyperedge snapshot restore FILE instead.`,
  flags: { root: ROOT_FLAG },
  arguments: [0, 0],
  examples: [['Abandon the store of this host', 'members new-cluster']],
  run: async ({ flags, out }) => {
    const { allowNewCluster } = await import('../../../host/store/cluster-id.ts');
    const former = await keepAliveDuring(allowNewCluster(stringFlag(flags, 'root')));
    out.stdout(
      former === undefined
        ? 'this host belongs to no cluster: its next start creates one\n'
        : `the store of cluster ${former} is abandoned: the next start of this host creates a new cluster\n`,
    );
    return 0;
  },
};

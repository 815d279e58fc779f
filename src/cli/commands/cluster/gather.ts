import { type Command, stringFlag } from '../../command.ts';

export const gatherCommand: Command = {
  name: 'gather',
  usage: '[--dest-dir DIR]',
  summary: 'collect the state of the cluster, without secrets, as files; run by oc adm must-gather',
  description:
    'Cluster-scoped objects, objects and logs of the cluster’s own namespaces, and logs of the nodes, in the layout of\n' +
    'oc adm inspect. Uses the service account of its pod.',
  flags: { 'dest-dir': { type: 'string', value: 'DIR', help: 'where the files are written (default /must-gather)' } },
  arguments: [0, 0],
  examples: [['Collect into a directory', 'gather --dest-dir /must-gather']],
  run: async ({ flags, out }) => {
    const { gatherCluster } = await import('../../../host/support-bundle/gather.ts');
    const missed = await gatherCluster(stringFlag(flags, 'dest-dir') ?? '/must-gather', (line) =>
      out.stdout(`${line}\n`),
    );
    return missed === 0 ? 0 : 1;
  },
};

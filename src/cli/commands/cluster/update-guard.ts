import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';

export const updateGuardCommand: Command = {
  name: 'update-guard',
  usage: '',
  summary: 'return to the former executable if an update does not become healthy; started by the service',
  hidden: true,
  flags: { root: ROOT_FLAG },
  arguments: [0, 0],
  examples: [['hyperedge-update-guard.service calls', 'update-guard']],
  run: async ({ flags }) => {
    const { guardUpdate } = await import('../../../host/openshift/updates.ts');
    return guardUpdate(stringFlag(flags, 'root'));
  },
};

import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';

export const updateGuardCommand: Command = {
  name: 'update-guard',
  usage: '',
  summary: 'go back to the former executable when an update does not become healthy; started by the service',
  hidden: true,
  flags: { root: ROOT_FLAG },
  arguments: [0, 0],
  examples: [['hyperedge-update-guard.service calls', 'update-guard']],
  run: async ({ flags }) => {
    const { guardUpdate } = await import('../../../host/openshift/updates.ts');
    return guardUpdate(stringFlag(flags, 'root'));
  },
};

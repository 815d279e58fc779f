import { type Command, ROOT_FLAG, stringFlag, UsageError } from '../../command.ts';

export const keepBalancerCommand: Command = {
  name: 'keep-balancer',
  usage: '[--root DIR]',
  summary: 'keep the API balancer’s port open while the host process restarts; started by it',
  hidden: true,
  description: 'The host process starts it when it stops and gives it the listening socket. Not for use by hand.',
  flags: { root: ROOT_FLAG },
  arguments: [0, 0],
  examples: [['The host process calls', 'keep-balancer']],
  run: async ({ flags }) => {
    if (process.send === undefined)
      throw new UsageError('keep-balancer: only the host process starts it; start hyperedge run');
    const { keepBalancer } = await import('../../../host/network/balancer.ts');
    await keepBalancer(stringFlag(flags, 'root'));
    return 0;
  },
};

import type { Command } from '../../command.ts';

export const volumeCallCommand: Command = {
  name: 'volume-call',
  usage: '-- own PATH GID POLICY | bind VOLUME SUBPATH TARGET',
  summary: 'change or bind a volume outside of the host process; started by it',
  hidden: true,
  description: 'The host process starts it for volumes whose file system may not answer. Not for use by hand.',
  flags: {},
  arguments: [4, 4],
  examples: [['Change the group of a volume', 'volume-call -- own /mnt/volume 2000 Always']],
  run: async ({ positionals }) => {
    const { runVolumeCalls } = await import('../../../host/node/volume-calls.ts');
    await runVolumeCalls(positionals);
    return 0;
  },
};

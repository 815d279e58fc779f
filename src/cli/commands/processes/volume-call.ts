import type { Command } from '../../command.ts';

export const volumeCallCommand: Command = {
  usage: 'volume-call -- own PATH GID POLICY | bind VOLUME SUBPATH TARGET',
  summary: 'Changes or binds a volume outside of the host process.',
  description: 'The host process starts it for volumes whose file system may not answer. Not for use by hand.',
  flags: {},
  arguments: [4, 4],
  run: async ({ positionals }) => {
    const { runVolumeCalls } = await import('../../../host/node/volume-calls.ts');
    await runVolumeCalls(positionals);
    return 0;
  },
};

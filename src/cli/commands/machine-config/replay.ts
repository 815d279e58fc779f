import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';

export const machineConfigReplayCommand: Command = {
  name: 'machine-config replay',
  usage: '[--root DIR]',
  summary: 'finish or undo a change of the machine config that a power cut has interrupted',
  description: 'hyperedge-machine-config.service runs it early at boot, when there is such a change.',
  flags: { root: ROOT_FLAG },
  arguments: [0, 0],
  examples: [['The unit at boot calls', 'machine-config replay']],
  run: async ({ flags, out }) => {
    const { replayAtBoot } = await import('../../../host/install/boot-machine-config.ts');
    out.stdout(`${await replayAtBoot(stringFlag(flags, 'root'))}\n`);
    return 0;
  },
};

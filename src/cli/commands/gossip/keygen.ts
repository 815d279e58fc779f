import type { Command } from '../../command.ts';

export const gossipKeygenCommand: Command = {
  name: 'gossip keygen',
  usage: '',
  summary: 'print a new keyring file',
  flags: {},
  arguments: [0, 0],
  examples: [['Write a keyring', 'gossip keygen > keyring']],
  run: async ({ out }) => {
    const { newKeyringText } = await import('../../../host/network/ring.ts');
    out.stdout(newKeyringText());
    return 0;
  },
};

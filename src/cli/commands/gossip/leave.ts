import { type Command, ROOT_FLAG } from '../../command.ts';
import { requestAgent } from './agent.ts';

export const gossipLeaveCommand: Command = {
  name: 'gossip leave',
  usage: '',
  summary: 'remove this host from the gossip ring',
  description: 'The host stays out of the ring until gossip join or the next start. Pods and the store keep running.',
  flags: { root: ROOT_FLAG },
  arguments: [0, 0],
  examples: [['Leave the ring', 'gossip leave']],
  run: async ({ flags, out }) => {
    await requestAgent(flags, 'leave', {});
    out.stdout('this host has left the ring\n');
    return 0;
  },
};

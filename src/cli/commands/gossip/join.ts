import { type Command, ROOT_FLAG } from '../../command.ts';
import { requestAgent } from './agent.ts';

export const gossipJoinCommand: Command = {
  name: 'gossip join',
  usage: 'ADDRESS…',
  summary: 'join this host to a gossip ring until its next start',
  description: 'For hosts to join at every start, set gossip.join in the bootstrap file.',
  flags: { root: ROOT_FLAG },
  arguments: [1, 64],
  examples: [['Join the ring of another host', 'gossip join 10.0.0.2:7946']],
  run: async ({ flags, positionals, out }) => {
    const { joined } = await requestAgent<{ joined: number }>(flags, 'join', { peers: positionals });
    out.stdout(`joined ${joined} of ${positionals.length}\n`);
    return joined === positionals.length ? 0 : 1;
  },
};

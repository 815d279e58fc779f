import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';

export const tokenRevokeCommand: Command = {
  name: 'token revoke',
  usage: 'TOKEN',
  summary: 'revoke a token; hosts that have joined with it stay',
  description: 'TOKEN is the whole token or its first six characters.',
  flags: { root: ROOT_FLAG },
  arguments: [1, 1],
  examples: [['Revoke a token by its id', 'token revoke a1b2c3']],
  run: async ({ flags, positionals, out }) => {
    const { revokeToken } = await import('../../../host/join/tokens.ts');
    out.stdout(`token ${await revokeToken(stringFlag(flags, 'root'), positionals[0] ?? '')} revoked\n`);
    return 0;
  },
};

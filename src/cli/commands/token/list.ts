import type { ListedToken } from '../../../host/join/tokens.ts';
import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';

export const tokenListCommand: Command = {
  name: 'token list',
  usage: '[-o json|yaml]',
  summary: 'list the tokens for joining hosts, without their secrets',
  flags: { output: OUTPUT_FLAG, root: ROOT_FLAG },
  arguments: [0, 0],
  examples: [['Tokens of the cluster', 'token list']],
  run: async ({ flags, out }) => {
    const { listTokens } = await import('../../../host/join/tokens.ts');
    const tokens = await listTokens(stringFlag(flags, 'root'));
    out.stdout((await printDocument(flags, tokens)) ?? tableOf(tokens));
    return 0;
  },
};

function tableOf(tokens: readonly ListedToken[]): string {
  return printTable(
    ['TOKEN', 'TTL', 'EXPIRES', 'ROLES', 'USAGES', 'DESCRIPTION'],
    tokens.map(({ id, ttlSeconds, expires, roles, usages, description }) => [
      id,
      ttlSeconds === undefined
        ? 'forever'
        : `${Math.floor(ttlSeconds / 3600)}h${Math.floor((ttlSeconds % 3600) / 60)}m`,
      expires ?? 'never',
      roles.join(),
      usages.join() || '-',
      description || '-',
    ]),
  );
}

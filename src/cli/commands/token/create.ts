import { type Command, ROOT_FLAG, stringFlag, UsageError } from '../../command.ts';
import { OUTPUT_FLAG, printDocument } from '../../printers.ts';

const UNIT_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

const MIN_TTL_MS = 60_000;

/**
 * Milliseconds of a duration such as `90m`, `24h` or `1h30m`; undefined if none is given. Throws UsageError for an
 * invalid duration or one of less than a minute.
 */
function ttlOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const parts = [...text.matchAll(/(\d{1,6})([smhd])/g)];
  const ms = parts.reduce((sum, [, count, unit]) => sum + Number(count) * (UNIT_MS[unit ?? ''] ?? 0), 0);
  if (parts.map(([part]) => part).join('') !== text || ms < MIN_TTL_MS)
    throw new UsageError(`--ttl=${text}: give a duration of at least a minute such as 90m, 24h or 7d`);
  return ms;
}

/** The new host usually has only the downloaded executable, which is not in its PATH. */
const HINT =
  'Run this command on the new host. If only the downloaded executable is there, start it by its path instead of\n' +
  '"hyperedge", for example ./hyperedge-linux-x64.\n';

export const tokenCreateCommand: Command = {
  name: 'token create',
  usage: '[--roles ROLES] [--ttl DURATION] [--description TEXT] [-o json|yaml]',
  summary: 'create a token for joining hosts and print the command that joins them',
  description:
    'Run it on a master. A token may be used for several hosts until it expires. A token for masters carries the keys\n' +
    'of the cluster: keep it as secret as the keys; it lasts for two hours at most.',
  flags: {
    roles: { type: 'string', value: 'ROLES', help: 'roles of the hosts: node, or master,etcd,node (default node)' },
    ttl: { type: 'string', value: 'DURATION', help: 'lifetime of the token (default 24h; 1h for masters)' },
    description: { type: 'string', value: 'TEXT', help: 'shown by token list' },
    output: OUTPUT_FLAG,
    root: ROOT_FLAG,
  },
  arguments: [0, 0],
  examples: [
    ['A token for nodes', 'token create'],
    ['A token for another master', 'token create --roles master,etcd,node --ttl 1h'],
  ],
  run: async ({ flags, out }) => {
    const ttlMs = ttlOf(stringFlag(flags, 'ttl'));
    const { createToken } = await import('../../../host/join/tokens.ts');
    const created = await createToken({
      root: stringFlag(flags, 'root'),
      roles: stringFlag(flags, 'roles') ?? 'node',
      ttlMs,
      description: stringFlag(flags, 'description'),
    });
    const document = await printDocument(flags, created);
    out.stdout(document ?? `${created.command}\n`);
    if (document === undefined) out.stderr(HINT);
    for (const warning of created.warnings) out.stderr(`hyperedge: warning: ${warning}\n`);
    return 0;
  },
};

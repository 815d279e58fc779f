import { type Command, integerFlag, stringFlag, UsageError } from '../../command.ts';

const MAX_NODES = 10_000;

const DEFAULT_NODES = 10;

export const hollowCommand: Command = {
  name: 'hollow',
  usage: '--kubeconfig FILE [--nodes N] [--prefix NAME] [--zones N]',
  summary: 'register hollow nodes for tests of the control plane',
  description:
    'A tool for measuring the control plane. Nodes are Ready, renew their leases and report their pods as running and\n' +
    'Ready; no container runs. Runs in the foreground until SIGTERM, and then deletes the nodes.',
  flags: {
    kubeconfig: { type: 'string', value: 'FILE', help: 'access to the API server, as an administrator' },
    nodes: { type: 'string', value: 'N', help: `number of nodes, up to ${MAX_NODES} (default ${DEFAULT_NODES})` },
    prefix: { type: 'string', value: 'NAME', help: 'nodes are NAME-0, NAME-1, … (default hollow)' },
    zones: { type: 'string', value: 'N', help: 'spread the nodes over N zones (default 0: no zone label)' },
    loglevel: { type: 'string', value: 'N', help: 'log level 0 to 10 (default 2)' },
  },
  arguments: [0, 0],
  examples: [['Register 100 nodes in three zones', 'hollow --kubeconfig admin.kubeconfig --nodes 100 --zones 3']],
  run: async ({ flags }) => {
    const kubeconfig = stringFlag(flags, 'kubeconfig');
    if (kubeconfig === undefined) throw new UsageError('--kubeconfig is missing; give the file of an administrator');
    const prefix = stringFlag(flags, 'prefix') ?? 'hollow';
    if (!/^[a-z0-9]([a-z0-9-]{0,50}[a-z0-9])?$/.test(prefix))
      throw new UsageError(`--prefix=${prefix}: give lower-case letters, digits and dashes`);
    const { runHollow } = await import('../../../host/commands/hollow.ts');
    return runHollow({
      kubeconfig,
      prefix,
      nodes: integerFlag(flags, 'nodes', 1, MAX_NODES) ?? DEFAULT_NODES,
      zones: integerFlag(flags, 'zones', 0, 1_000) ?? 0,
      logLevel: integerFlag(flags, 'loglevel', 0, 10),
    });
  },
};

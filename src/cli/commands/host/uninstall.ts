import {
  type Command,
  type Flag,
  type Invocation,
  integerFlag,
  ROOT_FLAG,
  stringFlag,
  UsageError,
} from '../../command.ts';

const DEFAULT_DRAIN_S = 60;

const PURGE_FLAG: Flag = { type: 'boolean', help: 'remove the data instead of keeping it in /var/lib/hyperedge-kept' };

const optionsOf = ({ flags, out }: Invocation) => ({
  root: stringFlag(flags, 'root'),
  purge: flags['purge'] === true,
  keepData: flags['keep-data'] === true,
  force: flags['force'] === true,
  drainTimeoutMs: (integerFlag(flags, 'drain-timeout', 0, 3600) ?? DEFAULT_DRAIN_S) * 1000,
  write: out.stdout,
});

export const resetCommand: Command = {
  usage: 'reset [--purge] [--force]',
  summary: 'Leaves the cluster and stops everything; data is kept aside.',
  description:
    'Evicts the pods of this node, removes its store member and its Node object, stops the host process and all\n' +
    'pods. The executable stays: hyperedge install joins or makes a cluster again.',
  flags: {
    purge: PURGE_FLAG,
    force: { type: 'boolean', help: 'go on when the cluster cannot be reached or would lose its last member' },
    'drain-timeout': {
      type: 'string',
      value: 'SECONDS',
      help: `how long evictions may take before pods are deleted (default ${DEFAULT_DRAIN_S})`,
    },
    root: ROOT_FLAG,
  },
  arguments: [0, 0],
  run: async (invocation) => (await import('../../../host/install/uninstall.ts')).reset(optionsOf(invocation)),
};

export const uninstallCommand: Command = {
  usage: 'uninstall [--purge | --keep-data]',
  summary: 'Stops everything and removes what install has put on this host.',
  description:
    'Removes units, links, carried programs, packet filter rules, links and cgroups. It does not leave the cluster:\n' +
    'run hyperedge reset first on a host of a cluster with several.',
  flags: {
    purge: PURGE_FLAG,
    'keep-data': {
      type: 'boolean',
      help: 'leave data and settings in place; a later installation continues with them',
    },
    root: ROOT_FLAG,
  },
  arguments: [0, 0],
  run: async (invocation) => {
    const options = optionsOf(invocation);
    if (options.purge && options.keepData) throw new UsageError('--keep-data: give it or --purge');
    return (await import('../../../host/install/uninstall.ts')).uninstall(options);
  },
};

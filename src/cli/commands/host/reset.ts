import { type Command, ROOT_FLAG } from '../../command.ts';
import { DEFAULT_DRAIN_S, optionsOf, PURGE_FLAG } from './removal.ts';

export const resetCommand: Command = {
  name: 'reset',
  usage: '[--purge] [--force]',
  summary: 'leave the cluster and stop all pods and services; the data is moved to a backup',
  description:
    'Evicts the pods of this node, removes its store member and its Node object, stops the host process and all\n' +
    'pods. The executable stays: hyperedge install joins or creates a cluster again.',
  flags: {
    purge: PURGE_FLAG,
    force: { type: 'boolean', help: 'continue although the cluster cannot be reached or would lose its last member' },
    'drain-timeout': {
      type: 'string',
      value: 'SECONDS',
      help: `how long evictions may take before pods are deleted (default ${DEFAULT_DRAIN_S})`,
    },
    root: ROOT_FLAG,
  },
  arguments: [0, 0],
  examples: [['Leave the cluster', 'reset']],
  run: async (invocation) => (await import('../../../host/install/uninstall.ts')).reset(optionsOf(invocation)),
};

import { type Command, ROOT_FLAG, UsageError } from '../../command.ts';
import { optionsOf, PURGE_FLAG } from './removal.ts';

export const uninstallCommand: Command = {
  name: 'uninstall',
  usage: '[--purge | --keep-data]',
  summary: 'stop all pods and services and remove the files of the installation',
  description:
    'Removes units, links, bundled programs, packet filter rules, links and cgroups. It does not leave the cluster:\n' +
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
  examples: [['Remove the program and its units', 'uninstall']],
  run: async (invocation) => {
    const options = optionsOf(invocation);
    if (options.purge && options.keepData) throw new UsageError('--keep-data: give it or --purge');
    return (await import('../../../host/install/uninstall.ts')).uninstall(options);
  },
};

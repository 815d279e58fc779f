import type { Command } from '../../command.ts';

export const doctorProbeCommand: Command = {
  name: 'doctor-probe',
  usage: 'fsync DIRECTORY | dns SERVER NAME | tcp ADDRESS PORT',
  summary: 'measure a file system or a network for doctor; started by it',
  hidden: true,
  description: 'hyperedge doctor starts it, because a disk may not answer. Not for use by hand.',
  flags: {},
  arguments: [2, 3],
  examples: [['Time of an fsync', 'doctor-probe fsync /var/lib/etcd']],
  run: async ({ positionals, out }) => {
    const { runProbe } = await import('../../../host/doctor/probe.ts');
    out.stdout(`${JSON.stringify(await runProbe(positionals))}\n`);
    return 0;
  },
};

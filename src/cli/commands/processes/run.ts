import { type Command, integerFlag, ROOT_FLAG, stringFlag } from '../../command.ts';

export const runCommand: Command = {
  name: 'run',
  usage: '[--root DIR] [--config FILE]',
  summary: 'run the host process: kubelet, service proxy and, as static pods, the control plane',
  description:
    'Runs in the foreground until SIGINT or SIGTERM. Creates certificates, kubeconfigs and configuration at the first start.\n' +
    'After a kill -9 the next start adopts running pods.',
  flags: {
    root: ROOT_FLAG,
    config: {
      type: 'string',
      value: 'FILE',
      help: 'bootstrap file (default /etc/origin/bootstrap.yaml, if it exists)',
    },
    'keep-pods': { type: 'boolean', help: 'keep pods running after the stop' },
    loglevel: { type: 'string', value: 'N', help: 'log level 0 to 10 of this process (default 2)' },
  },
  arguments: [0, 0],
  examples: [
    ['Run in the foreground with another bootstrap file', 'run --config /root/bootstrap.yaml'],
    ['Log more', 'run --loglevel 4'],
  ],
  run: async ({ flags, out }) => {
    const logLevel = integerFlag(flags, 'loglevel', 0, 10);
    const { runHost } = await import('../../../host/run/run.ts');
    return runHost({
      root: stringFlag(flags, 'root'),
      config: stringFlag(flags, 'config'),
      keepPods: flags['keep-pods'] === true,
      logLevel,
      write: out.stdout,
    });
  },
};

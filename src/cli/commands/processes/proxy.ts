import { type Command, integerFlag, ROOT_FLAG, stringFlag } from '../../command.ts';

export const proxyCommand: Command = {
  name: 'proxy',
  usage: '[--kubeconfig FILE]',
  summary: 'run the service proxy alone',
  description: 'hyperedge run contains it. Runs in the foreground until SIGTERM; its rules stay.',
  flags: {
    kubeconfig: { type: 'string', value: 'FILE', help: 'access to the API server (default: the node’s own)' },
    config: { type: 'string', value: 'FILE', help: 'bootstrap file (default /etc/origin/bootstrap.yaml)' },
    loglevel: { type: 'string', value: 'N', help: 'log level 0 to 10 (default 2)' },
    root: ROOT_FLAG,
  },
  arguments: [0, 0],
  examples: [['Proxy of another node’s kubeconfig', 'proxy --kubeconfig node.kubeconfig']],
  run: async ({ flags }) => {
    const logLevel = integerFlag(flags, 'loglevel', 0, 10);
    const { runProxy } = await import('../../../host/commands/proxy.ts');
    return runProxy({
      root: stringFlag(flags, 'root'),
      config: stringFlag(flags, 'config'),
      kubeconfig: stringFlag(flags, 'kubeconfig'),
      logLevel,
    });
  },
};

import { type Command, integerFlag, ROOT_FLAG, stringFlag } from '../../command.ts';

export const controllersCommand: Command = {
  name: 'controllers',
  usage: '[--config FILE]',
  summary: 'run the controllers and the scheduler',
  description: 'Runs in the foreground until SIGTERM. hyperedge run starts it as a static pod.',
  flags: {
    config: { type: 'string', value: 'FILE', help: 'configuration (default /etc/origin/master/master-config.yaml)' },
    env: { type: 'string', value: 'FILE', help: 'master.env (default: /etc/origin/master/master.env)' },
    loglevel: { type: 'string', value: 'N', help: 'log level 0 to 10 (default: from master.env, else 2)' },
    root: ROOT_FLAG,
  },
  arguments: [0, 0],
  examples: [['Run the controllers of this host', 'controllers --loglevel 4']],
  run: async ({ flags }) => {
    const logLevel = integerFlag(flags, 'loglevel', 0, 10);
    const { runComponent } = await import('../../../host/process/component.ts');
    return runComponent(
      'controllers',
      async () => (await import('../../../host/controllers/server.ts')).startControllers,
      {
        root: stringFlag(flags, 'root'),
        configFile: stringFlag(flags, 'config'),
        envFile: stringFlag(flags, 'env'),
        logLevel,
      },
    );
  },
};

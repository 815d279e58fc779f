import { type Command, type Flag, integerFlag, ROOT_FLAG, stringFlag } from '../command.ts';

const LEVEL_FLAG: Flag = {
  type: 'string',
  value: 'N',
  help: 'log level 0 to 10 (default: from master.env, else 2)',
};

const componentFlags = (config: string): Readonly<Record<string, Flag>> => ({
  config: { type: 'string', value: 'FILE', help: `configuration (default ${config})` },
  env: { type: 'string', value: 'FILE', help: 'master.env (default: /etc/origin/master/master.env)' },
  loglevel: LEVEL_FLAG,
  root: ROOT_FLAG,
});

type ComponentName = 'controllers';

const component = (name: ComponentName, summary: string, config: string): Command => ({
  usage: `${name} [--config FILE]`,
  summary,
  description: 'Runs in the foreground until SIGTERM. hyperedge run starts it as a static pod.',
  flags: componentFlags(config),
  arguments: [0, 0],
  run: async ({ flags }) => {
    const logLevel = integerFlag(flags, 'loglevel', 0, 10);
    const { runComponent } = await import('../../roles/component.ts');
    return runComponent(name, {
      root: stringFlag(flags, 'root'),
      configFile: stringFlag(flags, 'config'),
      envFile: stringFlag(flags, 'env'),
      logLevel,
    });
  },
});

export const controllersCommand = component(
  'controllers',
  'Runs the controllers and the scheduler.',
  '/etc/origin/master/master-config.yaml',
);

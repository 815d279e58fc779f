import { PRODUCT_VERSION } from '../../../base/versions/version.ts';
import {
  type Command,
  type FlagValues,
  integerFlag,
  type Output,
  stringFlag,
  takeOwnFlags,
  UsageError,
} from '../../command.ts';

/** Flags of this project. All other flags are passed to etcd's parser. */
const OWN = ['config', 'env', 'root', 'loglevel', 'snapshots', 'update-record'] as const;

const run = async (argv: readonly string[], own: { flags: FlagValues } | undefined, out: Output): Promise<number> => {
  const { EtcdUsageProblem, planEtcd, runEtcd } = await import('../../../host/store/run.ts');
  try {
    const plan = await planEtcd({
      argv,
      environment: process.env,
      own:
        own === undefined
          ? undefined
          : {
              root: stringFlag(own.flags, 'root'),
              configFile: stringFlag(own.flags, 'config'),
              envFile: stringFlag(own.flags, 'env'),
              logLevel: integerFlag(own.flags, 'loglevel', 0, 10),
              snapshots: stringFlag(own.flags, 'snapshots'),
              updateRecord: stringFlag(own.flags, 'update-record'),
            },
    });
    if (plan.kind === 'run') return await runEtcd(plan);
    out.stdout(plan.kind === 'help' ? await help(own !== undefined) : await version());
    return 0;
  } catch (error) {
    if (error instanceof EtcdUsageProblem && error.exitCode === 2) {
      const isLinked = own === undefined;
      throw new UsageError(
        isLinked ? error.message : error.message.replace('see etcd --help', 'see hyperedge etcd --help'),
      );
    }
    throw error;
  }
};

export const etcdCommand: Command = {
  name: 'etcd',
  usage: '[--config FILE | ETCD-FLAGS]',
  summary: 'run the store: etcd’s API on SQLite',
  flags: {},
  arguments: 'own',
  examples: [['Run a store as etcd is run', 'etcd --name n1 --data-dir /var/lib/etcd']],
  run: ({ positionals, out }) => {
    const { flags, rest } = takeOwnFlags('etcd', OWN, positionals);
    return run(rest, { flags }, out);
  },
};

/** The command as `etcd`. Under this name it accepts only etcd's flags. */
export const linkedEtcdCommand: Command = {
  ...etcdCommand,
  run: ({ positionals, out }) => run(positionals, undefined, out),
};

async function help(own: boolean): Promise<string> {
  const { flagHelp } = await import('../../../store/config/index.ts');
  const ours = `
Without flags and ETCD_ variables, the host's configuration is used. Flags of hyperedge:
  --config FILE
    this host's configuration; file names in it are relative to it (default /etc/etcd/etcd.conf.yaml)
  --env FILE
    master.env (default /etc/origin/master/master.env)
  --loglevel N
    log level 0 to 10 (default: from master.env, else 2)
  --root DIR
    root of all paths (default /)
  --snapshots DIR
    restore a damaged single-member store from the newest intact snapshot in DIR (default: it does not start)
  --update-record FILE
    the update of this host: formats that the former release cannot read wait until it is committed on all hosts, and
    the store of a rolled back update is restored (default: the log level rises once all members support it)
  --verbose
    print the stack of an error
`;
  return `Usage: ${own ? 'hyperedge ' : ''}etcd [FLAGS]

Runs the store: etcd's API on SQLite. Flags and ETCD_ variables are etcd's.
Runs in the foreground until SIGTERM.
${own ? ours : ''}${flagHelp()}`;
}

/** Version text in etcd's format, because tools parse its first line. */
async function version(): Promise<string> {
  const { etcdVersion } = await import('../../../host/store/run.ts');
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
  return `etcd Version: ${await etcdVersion()}
Git SHA: Not provided (hyperedge ${PRODUCT_VERSION})
Go Version: none (Node ${process.version})
Go OS/Arch: linux/${architecture}
`;
}

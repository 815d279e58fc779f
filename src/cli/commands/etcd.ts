import { PRODUCT_VERSION } from '../../base/version.ts';
import {
  type Command,
  type FlagValues,
  integerFlag,
  type Output,
  stringFlag,
  takeOwnFlags,
  UsageError,
} from '../command.ts';

/** Flags of this project; all others are etcd's. */
const OWN = ['config', 'env', 'root', 'loglevel', 'snapshots'] as const;

const run = async (argv: readonly string[], own: { flags: FlagValues } | undefined, out: Output): Promise<number> => {
  const { EtcdUsageProblem, planEtcd, runEtcd } = await import('../../roles/etcd/run.ts');
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
            },
    });
    if (plan.kind === 'run') return await runEtcd(plan);
    out.stdout(plan.kind === 'help' ? await help(own !== undefined) : await version());
    return 0;
  } catch (error) {
    if (error instanceof EtcdUsageProblem && error.exitCode === 2) throw new UsageError(error.message);
    throw error;
  }
};

export const etcdCommand: Command = {
  usage: 'etcd [--config FILE | ETCD-FLAGS]',
  summary: 'Runs the store: etcd’s API on SQLite.',
  flags: {},
  arguments: 'own',
  run: ({ positionals, out }) => {
    const { flags, rest } = takeOwnFlags('etcd', OWN, positionals);
    return run(rest, { flags }, out);
  },
};

/** Called as `etcd`: etcd's flags alone. */
export const linkedEtcdCommand: Command = {
  ...etcdCommand,
  run: ({ positionals, out }) => run(positionals, undefined, out),
};

async function help(own: boolean): Promise<string> {
  const { flagHelp } = await import('../../roles/config/etcd/index.ts');
  const ours = `
Without any flag and ETCD_ variable, what the host has written counts. This project's own:
  --config FILE
    this host's configuration, with names relative to it (default /etc/etcd/etcd.conf.yaml)
  --env FILE
    master.env (default /etc/origin/master/master.env)
  --loglevel N
    log level 0 to 10 (default: that of master.env, else 2)
  --root DIR
    directory that all files are below (default /)
  --snapshots DIR
    a store that is damaged and has no other members goes back to the newest whole snapshot of these (default: it does not start)
  --verbose
    with an error, show where it came from
`;
  return `Usage: ${own ? 'hyperedge ' : ''}etcd [FLAGS]

Runs the store: etcd's API on SQLite. Flags are etcd's, and so are variables: ETCD_DATA_DIR for --data-dir.
Runs in the foreground until SIGTERM.
${own ? ours : ''}${flagHelp()}`;
}

/** In etcd's words: tools read the first line. */
async function version(): Promise<string> {
  const { etcdVersion } = await import('../../roles/etcd/run.ts');
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
  return `etcd Version: ${await etcdVersion()}
Git SHA: Not provided (hyperedge ${PRODUCT_VERSION})
Go Version: none (Node ${process.version})
Go OS/Arch: linux/${architecture}
`;
}

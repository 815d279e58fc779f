import { KUBERNETES_VERSION } from '../../../base/versions/version.ts';
import { type Command, integerFlag, type Output, stringFlag, takeOwnFlags, UsageError } from '../../command.ts';

/** Flags of this project. All other flags are passed to kube-apiserver's parser. */
const OWN = ['config', 'env', 'root', 'loglevel', 'profile'] as const;

const run = async (
  argv: readonly string[],
  { linked }: { readonly linked: boolean },
  out: Output,
  profileText = 'okd',
): Promise<number> => {
  const { API_PROFILES, ApiUsageProblem, planApi, runApi } = await import('../../../host/apiserver/run.ts');
  const profile = API_PROFILES.find((each) => each === profileText);
  if (profile === undefined)
    throw new UsageError(`--profile: "${profileText}" is not a profile; give one of ${API_PROFILES.join(', ')}`);
  try {
    const plan = planApi(argv);
    if (plan.kind === 'run') return await runApi(plan.values, profile);
    out.stdout(plan.kind === 'help' ? await help(linked) : `Kubernetes ${KUBERNETES_VERSION.gitVersion}\n`);
    return 0;
  } catch (error) {
    // kube-apiserver exits with 1 for every error.
    if (error instanceof ApiUsageProblem && !linked)
      throw new UsageError(error.message.replace('see kube-apiserver --help', 'see hyperedge api --help'));
    throw error;
  }
};

/** The command `api`. Without kube-apiserver flags, it uses the configuration of this host. */
export const apiCommand: Command = {
  name: 'api',
  usage: '[--config FILE | KUBE-APISERVER-FLAGS]',
  summary: 'run the API server',
  flags: {},
  arguments: 'own',
  examples: [['Run the API server of this host', 'api --loglevel 4']],
  run: async ({ positionals, out }) => {
    const { flags, rest } = takeOwnFlags('api', OWN, positionals);
    if (rest.length > 0) {
      const mixed = Object.keys(flags).find((name) => name !== 'loglevel' && name !== 'profile');
      if (mixed !== undefined && !rest.some((each) => each === '--help' || each === '-h'))
        throw new UsageError(`--${mixed} and kube-apiserver's own flags exclude each other; give one of them`);
      // With `--profile`, the command takes the place of kube-apiserver in a start script of envtest.
      const profile = stringFlag(flags, 'profile');
      return run(rest, { linked: profile !== undefined }, out, profile);
    }
    if (flags['profile'] !== undefined)
      throw new UsageError(
        "--profile is for kube-apiserver's flags; the host's own server has openshift.profile of the bootstrap file",
      );
    const logLevel = integerFlag(flags, 'loglevel', 0, 10);
    const { runComponent } = await import('../../../host/process/component.ts');
    return runComponent('api', async () => (await import('../../../host/apiserver/server.ts')).startApi, {
      root: stringFlag(flags, 'root'),
      configFile: stringFlag(flags, 'config'),
      envFile: stringFlag(flags, 'env'),
      logLevel,
    });
  },
};

/** The command as `kube-apiserver`. Under this name it accepts only kube-apiserver's flags. */
export const linkedApiCommand: Command = {
  ...apiCommand,
  run: ({ positionals, out }) => run(positionals, { linked: true }, out),
};

async function help(linked: boolean): Promise<string> {
  const { apiFlagHelp } = await import('../../../apiserver/config/index.ts');
  const ours = `
Without flags, the host's configuration is used. Flags of hyperedge:
  --config FILE
    configuration (default /etc/origin/master/master-config.yaml)
  --env FILE
    master.env (default /etc/origin/master/master.env)
  --loglevel N
    log level 0 to 10 (default: from master.env, else 2)
  --profile kubernetes|okd
    beside kube-apiserver's flags: serve its API alone, or OpenShift's kinds too (default okd)
  --root DIR
    root of all paths (default /)
  --verbose
    print the stack of an error
`;
  return `Usage: ${linked ? 'kube-apiserver' : 'hyperedge api'} [FLAGS]

Runs the API server. Flags are kube-apiserver's. Runs in the foreground until SIGTERM.
${linked ? '' : ours}${apiFlagHelp()}`;
}

import { COMPONENTS } from '../../../host/process/component-names.ts';
import { type Command, integerFlag, ROOT_FLAG, stringFlag, UsageError } from '../../command.ts';

function checkComponent(name: string | undefined): string {
  if (name === undefined || !COMPONENTS.some((each) => each === name)) {
    throw new UsageError(`unknown component "${name ?? ''}": give ${COMPONENTS.join(', ')}`);
  }
  return name;
}

export const restartCommand: Command = {
  usage: 'master-restart api|controllers|etcd',
  summary: 'Restarts a control-plane component of this host.',
  description:
    'The host process restarts its container and waits until the component is ready. Files that do not start are reported.',
  flags: { root: ROOT_FLAG },
  arguments: [1, 2],
  run: async ({ flags, positionals, out }) => {
    const component = checkComponent(positionals[0]);
    // OKD's script takes the container as second argument. Each component has one container with the same name.
    if (positionals[1] !== undefined) checkComponent(positionals[1]);
    const [{ callControl, RESTART_TIMEOUT_MS }, { canonicalRoot, pathsBelow }] = await Promise.all([
      import('../../../host/control/control.ts'),
      import('../../../host/config/settings.ts'),
    ]);
    const socket = pathsBelow(await canonicalRoot(stringFlag(flags, 'root'))).controlSocket;
    await callControl(socket, 'POST', `/restart/${component}`, RESTART_TIMEOUT_MS);
    out.stdout(`${component} restarted\n`);
    return 0;
  },
};

export const logsCommand: Command = {
  usage: 'master-logs COMPONENT CONTAINER [-f] [--tail N]',
  summary: 'Shows the log of a control-plane container of this host.',
  description: 'Reads the log files: works without the API server and the host process.',
  flags: {
    follow: { type: 'boolean', short: 'f', help: 'follow the log' },
    tail: { type: 'string', value: 'N', help: 'show the last N lines' },
    previous: { type: 'boolean', short: 'p', help: 'show the log of the previous container' },
    root: ROOT_FLAG,
  },
  arguments: [1, 2],
  run: async ({ flags, positionals, out }) => {
    const component = checkComponent(positionals[0]);
    const container = positionals[1] === undefined ? component : checkComponent(positionals[1]);
    const tail = integerFlag(flags, 'tail', 0, 1_000_000);
    const [{ findContainerLogs, printLog }, { failedRevisions, failureMessage }, { canonicalRoot, pathsBelow }] =
      await Promise.all([
        import('../../../host/control/container-logs.ts'),
        import('../../../host/openshift/revision-archive.ts'),
        import('../../../host/config/settings.ts'),
      ]);
    const paths = pathsBelow(await canonicalRoot(stringFlag(flags, 'root')));
    const logs = await findContainerLogs(paths.podLogs, `master-${component}`, container, Date.now());
    const file = flags['previous'] === true ? logs.at(-2) : logs.at(-1);
    if (file === undefined) {
      out.stderr(
        `hyperedge: ${component} has no ${flags['previous'] === true ? 'earlier ' : ''}log below ${paths.podLogs}; ` +
          'run the command on a master, or name its --root\n',
      );
      return 1;
    }
    const failed = (await failedRevisions(paths.staticPodResources)).filter((each) => each.component === component);
    for (const each of failed) out.stderr(`hyperedge: ${failureMessage(each)}\n`);
    await printLog(file, { follow: flags['follow'] === true, tail }, out.stdout, out.stderr);
    return failed.length === 0 ? 0 : 1;
  },
};

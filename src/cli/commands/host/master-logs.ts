import { COMPONENTS } from '../../../host/process/component-names.ts';
import { type Command, integerFlag, ROOT_FLAG, stringFlag } from '../../command.ts';
import { checkComponent } from './component.ts';

export const masterLogsCommand: Command = {
  name: 'master-logs',
  usage: 'COMPONENT CONTAINER [-f] [--tail N]',
  summary: 'show the log of a control-plane container of this host',
  description: 'Reads the log files: works without the API server and the host process.',
  flags: {
    follow: { type: 'boolean', short: 'f', help: 'follow the log' },
    tail: { type: 'string', value: 'N', help: 'show the last N lines' },
    previous: { type: 'boolean', short: 'p', help: 'show the log of the previous container' },
    root: ROOT_FLAG,
  },
  arguments: [1, 2],
  values: [COMPONENTS, COMPONENTS],
  examples: [
    ['Follow the log of the API server', 'master-logs api api -f'],
    ['Last lines of the container before', 'master-logs etcd etcd --previous --tail 50'],
  ],
  run: async ({ flags, positionals, out }) => {
    const component = checkComponent(positionals[0]);
    const container = positionals[1] === undefined ? component : checkComponent(positionals[1]);
    const tail = integerFlag(flags, 'tail', 0, 1_000_000);
    const [{ findContainerLogs, printLog }, { failedRevisions, failureMessage }, { canonicalRoot, pathsBelow }] =
      await Promise.all([
        import('../../../host/control/container-logs.ts'),
        import('../../../host/openshift/revision-archive.ts'),
        import('../../../host/config/paths.ts'),
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

import { COMPONENTS } from '../../../host/process/component-names.ts';
import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { checkComponent } from './component.ts';

export const masterRestartCommand: Command = {
  name: 'master-restart',
  usage: 'api|controllers|etcd',
  summary: 'restart a control-plane component of this host',
  description:
    'The host process restarts its container and waits until the component is ready. Files that do not start are reported.',
  flags: { root: ROOT_FLAG },
  arguments: [1, 2],
  values: [COMPONENTS],
  examples: [['Restart the API server', 'master-restart api']],
  run: async ({ flags, positionals, out }) => {
    const component = checkComponent(positionals[0]);
    // OKD's script takes a container as second argument. Here, each component has one container, which has the
    // component's name.
    if (positionals[1] !== undefined) checkComponent(positionals[1]);
    const [{ callControl, RESTART_TIMEOUT_MS }, { canonicalRoot, pathsBelow }] = await Promise.all([
      import('../../../host/control/control.ts'),
      import('../../../host/config/paths.ts'),
    ]);
    const socket = pathsBelow(await canonicalRoot(stringFlag(flags, 'root'))).controlSocket;
    await callControl(socket, 'POST', `/restart/${component}`, RESTART_TIMEOUT_MS);
    out.stdout(`${component} restarted\n`);
    return 0;
  },
};

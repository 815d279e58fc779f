/** `attach`: connects this terminal to the main process of a container. */
import { ClientError } from '../../core/errors.ts';
import { fieldAt, listAt } from '../../core/objects.ts';
import type { VerbContext } from '../../port.ts';
import { withSession } from '../../run.ts';
import { connectTerminal, containerOf, runningPod } from './exec.ts';

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, args, io } = context;
    const [name, ...more] = args;
    if (name === undefined || more.length > 0)
      throw new ClientError(
        `expected POD, TYPE/NAME, or TYPE NAME, (at most 2 arguments) saw ${args.length}: [${args.join(' ')}]`,
      );
    const pod = await runningPod(session, name);
    const container = containerOf(session, pod);
    const spec = listAt(pod, 'spec', 'containers').find((each) => each['name'] === container);
    const tty = flags.bool('tty') && fieldAt(spec, 'tty') === true;
    if (flags.bool('tty') && !tty) io.err(`error: Unable to use a TTY - container ${container} did not allocate one\n`);
    if (!flags.bool('quiet')) io.err("If you don't see a command prompt, try pressing enter.\n");
    return connectTerminal(session, pod, 'attach', { container, stdin: flags.bool('stdin'), tty });
  });

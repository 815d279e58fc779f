/** `run`: creates a pod from an image and attaches to it if requested. Source: k8s.io/kubectl/pkg/cmd/run. */

import { parseGoDuration } from '../../core/durations.ts';
import { ClientError } from '../../core/errors.ts';
import { type AnyObject, listAt, numberAt, textAt } from '../../core/objects.ts';
import { pathOf } from '../../core/resources.ts';
import type { VerbContext } from '../../port.ts';
import { dryRunOf, printOutcome } from '../../printing.ts';
import { withSession } from '../../run.ts';
import type { Session } from '../../session.ts';
import { connectTerminal } from '../containers/exec.ts';
import { deleteTargets } from '../objects/delete.ts';
import { createObject } from './create.ts';
import { podFromFlags, serviceFor } from './run-objects.ts';

const POLL_MS = 100;
const RESTART_POLICIES = ['Always', 'OnFailure', 'Never'];

const usageError = (message: string): ClientError => new ClientError(message, { usage: true });

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, io } = context;
    const isAttached = (flags.bool('attach') || flags.bool('stdin')) && flags.text('attach') !== 'false';
    if (flags.bool('tty') && !flags.bool('stdin'))
      throw new ClientError('-i/--stdin is required for containers with -t/--tty=true');
    if (flags.bool('rm') && !isAttached) throw usageError('--rm should only be used for attached containers');
    if (isAttached && dryRunOf(flags) !== 'none')
      throw usageError(
        "--dry-run=[server|client] can't be used with attached containers options (--attach, --stdin, or --tty)",
      );
    if (flags.has('restart') && !RESTART_POLICIES.includes(flags.text('restart')))
      throw usageError(`invalid restart policy: ${flags.text('restart')}`);
    if (flags.bool('expose') && flags.text('port') === '')
      throw usageError('--port must be set when exposing a service');
    const pod = podFromFlags(context);
    if (flags.bool('expose')) await createObject(session, serviceFor(context, pod), undefined);
    if (!isAttached) {
      await createObject(session, pod, undefined);
      return 0;
    }
    const pods = await session.resource('pods');
    const created = await session.send('POST', pathOf(pods, session.namespace), {
      query: { fieldManager: 'kubectl-run' },
      body: pod,
    });
    const name = created.metadata?.name ?? '';
    try {
      const code = await attach(session, name);
      return code;
    } finally {
      if (flags.bool('rm')) {
        await deleteTargets(session, [{ resource: pods, namespace: session.namespace, name }], {
          ignoreMissing: true,
          wait: false,
          gracePeriodSeconds: 1,
        });
        if (!flags.bool('quiet')) io.out(`pod "${name}" deleted from ${session.namespace} namespace\n`);
      } else if (!flags.bool('stdin')) await printOutcome(context, created, 'created');
    }
  });

/** Waits for the container, attaches or prints its log, and resolves with its exit code. */
async function attach(session: Session, name: string): Promise<number> {
  const { flags, io, system, signal } = session.context;
  const pods = await session.resource('pods');
  const path = pathOf(pods, session.namespace, name);
  const deadline = system.monotonicMs() + parseGoDuration(flags.text('pod-running-timeout') || '1m0s');
  const phaseOf = async (): Promise<{ readonly phase: string; readonly pod: AnyObject }> => {
    const pod = await session.get(path);
    return { pod, phase: textAt(pod, 'status', 'phase') };
  };
  let state = await phaseOf();
  while (state.phase === 'Pending' || state.phase === '') {
    if (system.monotonicMs() > deadline) throw new ClientError('timed out waiting for the condition');
    await system.sleep(POLL_MS, signal);
    state = await phaseOf();
  }
  let failure: unknown;
  if (state.phase === 'Running') {
    if (flags.bool('stdin') && io.isInputTerminal && !flags.bool('quiet'))
      io.err("If you don't see a command prompt, try pressing enter.\n");
    try {
      await connectTerminal(session, state.pod, 'attach', {
        container: name,
        stdin: flags.bool('stdin'),
        tty: flags.bool('tty'),
      });
    } catch (error) {
      // If the container has ended between the two requests, its log contains the output.
      failure = error;
    }
  }
  if (state.phase !== 'Running' || failure !== undefined) {
    const body = await session.stream(`${path}/log`, { container: name, follow: true }, 'text/plain');
    for await (const chunk of body) io.out(chunk);
  }
  if (flags.text('restart') !== 'Never') return 0;
  while (state.phase === 'Running') {
    state = await phaseOf();
    if (state.phase === 'Running') await system.sleep(POLL_MS, signal);
  }
  const [status] = listAt(state.pod, 'status', 'containerStatuses');
  const exitCode = numberAt(status, 0, 'state', 'terminated', 'exitCode');
  if (exitCode !== 0)
    throw new ClientError(
      `pod ${session.namespace}/${name} terminated (${textAt(status, 'state', 'terminated', 'reason')})`,
      { exitCode, isPlain: true },
    );
  return 0;
}

/** `scale`: sets the number of replicas of workloads through the subresource `scale`. */

import { parseGoDuration } from '../../core/durations.ts';
import { ClientError } from '../../core/errors.ts';
import { numberAt } from '../../core/objects.ts';
import type { VerbContext } from '../../port.ts';
import { dryRunOf, printOutcome } from '../../printing.ts';
import { withSession } from '../../run.ts';
import { currentObject, pathOfTarget, targetsOf } from '../../targets.ts';

const POLL_MS = 250;

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, system, signal } = context;
    if (!flags.has('replicas')) throw new ClientError('required flag(s) "replicas" not set');
    if (flags.int('replicas') < 0)
      throw new ClientError('The --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0');
    const replicas = flags.int('replicas');
    for (const target of await targetsOf(session)) {
      const before = await session.get(pathOfTarget(target, 'scale'));
      const current = numberAt(before, 0, 'spec', 'replicas');
      if (
        flags.has('current-replicas') &&
        flags.int('current-replicas') >= 0 &&
        flags.int('current-replicas') !== current
      )
        throw new ClientError(`Expected replicas to be ${flags.int('current-replicas')}, was ${current}`);
      const resourceVersion = flags.text('resource-version');
      if (resourceVersion !== '' && resourceVersion !== before.metadata?.resourceVersion)
        throw new ClientError(
          `Expected resource version to be ${resourceVersion}, was ${before.metadata?.resourceVersion ?? ''}`,
        );
      if (dryRunOf(flags) !== 'client')
        await session.send('PATCH', pathOfTarget(target, 'scale'), {
          query: { dryRun: dryRunOf(flags) === 'server' ? 'All' : undefined, fieldManager: 'kubectl-scale' },
          body: { spec: { replicas }, ...(resourceVersion === '' ? {} : { metadata: { resourceVersion } }) },
          contentType: 'application/merge-patch+json',
        });
      const timeout = flags.text('timeout');
      if (timeout !== '' && timeout !== '0s' && dryRunOf(flags) === 'none') {
        const deadline = system.monotonicMs() + parseGoDuration(timeout);
        while (numberAt(await session.get(pathOfTarget(target, 'scale')), 0, 'status', 'replicas') !== replicas) {
          if (system.monotonicMs() > deadline) throw new ClientError('timed out waiting for the condition');
          await system.sleep(POLL_MS, signal);
        }
      }
      await printOutcome(context, await currentObject(session, target), 'scaled');
    }
    return 0;
  });

/** `delete`: deletes objects and waits for their removal. Source: k8s.io/kubectl/pkg/cmd/delete. */

import { isApiError } from '../../../api/meta/status.ts';
import { printable } from '../../../base/text/printable.ts';
import { parseGoDuration } from '../../core/durations.ts';
import { ClientError } from '../../core/errors.ts';
import type { Flags } from '../../core/flags.ts';
import { printedKind } from '../../core/resources.ts';
import type { VerbContext } from '../../port.ts';
import { dryRunOf, dryRunSuffix } from '../../printing.ts';
import { errorLine, withSession } from '../../run.ts';
import type { Session } from '../../session.ts';
import { currentObject, pathOfTarget, type Target, targetsOf } from '../../targets.ts';

const POLL_MS = 250;

const NO_ARGUMENTS = `You must provide one or more resources by argument or filename.
Example resource specifications include:
   '-f rsrc.yaml'
   '--filename=rsrc.json'
   '<resource> <name>'
   '<resource>'`;

/** Grace period of the requests; undefined for the one of the object. A negative `grace` means that no flag sets it. */
function gracePeriodOf(grace: number, isForced: boolean): number | undefined {
  if (grace < 0) return isForced ? 0 : undefined;
  // As in kubectl, only --force deletes immediately.
  return grace === 0 && !isForced ? 1 : grace;
}

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, io, args } = context;
    const output = flags.text('output');
    if (output !== '' && output !== 'name')
      throw new ClientError(`unexpected -o output mode: ${output}. We only support '-o name'`);
    if (args.length === 0 && !flags.has('filename') && !flags.has('kustomize')) {
      const selects = flags.bool('all') || flags.text('selector') !== '' || flags.text('field-selector') !== '';
      throw new ClientError(selects ? 'at least one resource must be specified to use a selector' : NO_ARGUMENTS);
    }
    const targets = await targetsOf(session);
    if (targets.length === 0) {
      io.out('No resources found\n');
      return 0;
    }
    const grace = flags.has('grace-period') ? flags.int('grace-period') : flags.bool('now') ? 1 : -1;
    if (flags.bool('now') && flags.has('grace-period'))
      throw new ClientError('--now and --grace-period cannot be specified together');
    if (flags.bool('force') && grace <= 0)
      io.err(
        'Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.\n',
      );
    return deleteTargets(session, targets, {
      ignoreMissing: flags.bool('ignore-not-found') || flags.bool('all'),
      wait: flags.text('wait') !== 'false' && dryRunOf(flags) === 'none',
      gracePeriodSeconds: gracePeriodOf(grace, flags.bool('force')),
      propagation: propagationOf(flags.text('cascade')),
      timeoutMs:
        flags.text('timeout') === '' || flags.text('timeout') === '0s'
          ? undefined
          : parseGoDuration(flags.text('timeout')),
      isForced: flags.bool('force'),
      print: (target) => {
        if (output === 'name') io.out(printable(`${printedKind(target.resource)}/${target.name}\n`));
        else {
          io.out(deletedLine(target, flags.bool('force') && grace <= 0 ? 'force deleted' : 'deleted', flags));
        }
      },
    });
  });

/** Line that reports a deleted object. `done` is `deleted` or `force deleted`. */
export function deletedLine({ resource, namespace, name }: Target, done: string, flags: Flags): string {
  const where = namespace === undefined ? '' : ` from ${namespace} namespace`;
  return printable(`${printedKind(resource)} "${name}" ${done}${where}${dryRunSuffix(flags)}\n`);
}

function propagationOf(cascade: string): string {
  switch (cascade) {
    case 'background':
    case 'true':
    case '':
      return 'Background';
    case 'foreground':
      return 'Foreground';
    case 'orphan':
    case 'false':
      return 'Orphan';
    default:
      throw new ClientError(`invalid cascade value (${cascade}). Must be "background", "foreground", or "orphan"`);
  }
}

export interface DeleteSettings {
  readonly ignoreMissing: boolean;
  readonly wait: boolean;
  readonly gracePeriodSeconds?: number | undefined;
  readonly propagation?: string;
  readonly timeoutMs?: number | undefined;
  readonly isForced?: boolean;
  readonly print?: (target: Target) => void;
}

/**
 * Deletes the targets and waits for their removal. Errors are printed without ending the loop. Resolves with the exit
 * code.
 */
export async function deleteTargets(
  session: Session,
  targets: readonly Target[],
  settings: DeleteSettings,
): Promise<number> {
  const { flags, io } = session.context;
  const mode = dryRunOf(flags);
  let failed = false;
  const deleted: { readonly target: Target; readonly uid: string | undefined }[] = [];
  for (const target of targets) {
    try {
      if (mode !== 'client') {
        const answer = await session.send<{ details?: { uid?: string }; metadata?: { uid?: string } } | undefined>(
          'DELETE',
          pathOfTarget(target),
          {
            body: {
              apiVersion: 'v1',
              kind: 'DeleteOptions',
              propagationPolicy: settings.propagation ?? 'Background',
              ...(settings.gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds: settings.gracePeriodSeconds }),
              ...(mode === 'server' ? { dryRun: ['All'] } : {}),
            },
          },
        );
        deleted.push({ target, uid: answer?.metadata?.uid ?? answer?.details?.uid });
      }
      settings.print?.(target);
    } catch (error) {
      if (settings.ignoreMissing && isApiError(error, 'NotFound')) continue;
      if (targets.length === 1 && target.source === undefined) throw error;
      failed = true;
      io.err(`${errorLine(error, target.source === undefined ? '' : `error when deleting "${target.source}"`)}\n`);
    }
  }
  if (settings.wait)
    for (const { target, uid } of deleted) await waitUntilGone(session, target, uid, settings.timeoutMs);
  return failed ? 1 : 0;
}

/** Resolves when the object with this UID no longer exists. Throws ClientError at the time limit. */
export async function waitUntilGone(
  session: Session,
  target: Target,
  uid: string | undefined,
  timeoutMs: number | undefined,
): Promise<void> {
  const { system, signal } = session.context;
  const deadline = timeoutMs === undefined ? Number.POSITIVE_INFINITY : system.monotonicMs() + timeoutMs;
  for (let wait = 20; ; wait = Math.min(wait * 2, POLL_MS)) {
    try {
      const current = await currentObject(session, target);
      if (uid !== undefined && current.metadata?.uid !== uid) return;
    } catch (error) {
      if (isApiError(error, 'NotFound') || isApiError(error, 'Forbidden') || isApiError(error, 'MethodNotAllowed'))
        return;
      throw error;
    }
    if (system.monotonicMs() >= deadline)
      throw new ClientError(`timed out waiting for the condition on ${target.resource.name}/${target.name}`);
    await system.sleep(wait, signal);
  }
}

/** `wait`: waits for conditions, fields, creation or deletion. Source: k8s.io/kubectl/pkg/cmd/wait. */

import { isApiError } from '../../../api/meta/status.ts';
import { printable } from '../../../base/text/printable.ts';
import { parseGoDuration } from '../../core/durations.ts';
import { ClientError } from '../../core/errors.ts';
import { parseRelaxedPath, printed } from '../../core/json-path.ts';
import { type AnyObject, listAt, textAt } from '../../core/objects.ts';
import { printedKind } from '../../core/resources.ts';
import type { VerbContext } from '../../port.ts';
import { objectPrinter } from '../../printing.ts';
import { errorLine, withSession } from '../../run.ts';
import type { Session } from '../../session.ts';
import { currentObject, type Target, targetsOf } from '../../targets.ts';

const POLL_MS = 250;

/** Whether an object meets the condition. The argument is undefined for a missing object. */
type Check = (object: AnyObject | undefined) => boolean;

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, io, system, signal } = context;
    const check = checkOf(flags.text('for'));
    const timeout = parseGoDuration(flags.text('timeout') || '30s');
    const deadline = system.monotonicMs() + (timeout < 0 ? 7 * 24 * 3_600_000 : timeout);
    const isDeletion = flags.text('for') === 'delete';
    const isCreation = flags.text('for') === 'create';
    let targets = await targetsOf(session);
    while (targets.length === 0 && flags.text('for') === 'create' && system.monotonicMs() < deadline) {
      await system.sleep(POLL_MS, signal);
      targets = await targetsOf(session);
    }
    if (targets.length === 0) {
      if (isDeletion) return 0;
      throw new ClientError('no matching resources found');
    }
    const printer = await objectPrinter(context);
    const errors: string[] = [];
    const notMet = timeout === 0 ? 'condition not met for' : 'timed out waiting for the condition on';
    await Promise.all(
      targets.map(async (target) => {
        // A named object that does not exist counts as deleted.
        if (isDeletion && target.object === undefined && (await isMissing(session, target))) return;
        const met = await waitFor(session, target, check, deadline, isDeletion || isCreation).catch(
          (error: unknown) => void errors.push(errorLine(error)),
        );
        if (met === undefined) return;
        if (met.isMet) {
          if (printer === undefined)
            io.out(printable(`${printedKind(target.resource)}/${target.name} condition met\n`));
          else if (met.object !== undefined) io.out(printer(met.object));
        } else
          errors.push(
            isCreation
              ? 'error: timed out waiting for the condition'
              : printable(`error: ${notMet} ${target.resource.name}/${target.name}`),
          );
      }),
    );
    // As in kubectl, the prefix is printed only if there is a single error.
    for (const text of errors) io.err(`${errors.length === 1 ? text : text.replace(/^error: /, '')}\n`);
    return errors.length === 0 ? 0 : 1;
  });

async function isMissing(session: Session, target: Target): Promise<boolean> {
  try {
    await currentObject(session, target);
    return false;
  } catch (error) {
    if (isApiError(error, 'NotFound')) return true;
    throw error;
  }
}

async function waitFor(
  session: Session,
  target: Target,
  check: Check,
  deadline: number,
  mayBeMissing: boolean,
): Promise<{ readonly isMet: boolean; readonly object: AnyObject | undefined }> {
  const { system, signal } = session.context;
  for (;;) {
    const object = await currentObject(session, target).catch((error: unknown) => {
      if (mayBeMissing && isApiError(error, 'NotFound')) return undefined;
      throw error;
    });
    if (check(object)) return { isMet: true, object: object ?? target.object };
    if (system.monotonicMs() >= deadline) return { isMet: false, object };
    await system.sleep(POLL_MS, signal);
  }
}

function checkOf(text: string): Check {
  const lower = text.toLowerCase();
  if (text === '') throw new ClientError('unrecognized condition: []');
  if (lower === 'delete') return (object) => object === undefined;
  if (lower === 'create') return (object) => object !== undefined;
  if (lower.startsWith('condition=')) {
    const [, type = '', value = 'true'] = text.split('=');
    return (object) =>
      listAt(object, 'status', 'conditions').some(
        (each) =>
          textAt(each, 'type').toLowerCase() === type.toLowerCase() &&
          textAt(each, 'status').toLowerCase() === value.toLowerCase() &&
          isCurrent(object, each),
      );
  }
  if (lower.startsWith('jsonpath=')) {
    const [, expression = '', value] = /^jsonpath=(\{.*\}|[^=]+)(?:=(.*))?$/is.exec(text) ?? [];
    if (expression === '') throw new ClientError('jsonpath expression cannot be empty');
    const path = parseRelaxedPath(expression);
    const wanted = value === undefined ? undefined : value.replace(/^(['"])(.*)\1$/s, '$2');
    return (object) => {
      const [found] = object === undefined ? [] : path.find(object);
      return wanted === undefined ? found !== undefined : found !== undefined && printed(found) === wanted;
    };
  }
  throw new ClientError(`unrecognized condition: ${JSON.stringify(text)}`);
}

/** Whether the condition belongs to the current generation of the object. */
function isCurrent(object: AnyObject | undefined, condition: Record<string, unknown>): boolean {
  const observed = condition['observedGeneration'];
  return typeof observed !== 'number' || observed >= (object?.metadata?.generation ?? 0);
}

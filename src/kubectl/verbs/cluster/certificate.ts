/** `certificate approve|deny`. Source: k8s.io/kubectl/pkg/cmd/certificates. */
import { isApiError } from '../../../api/meta/status.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import { ClientError } from '../../core/errors.ts';
import { type AnyObject, listAt, textAt } from '../../core/objects.ts';
import type { VerbContext } from '../../port.ts';
import { printOutcome } from '../../printing.ts';
import { withSession } from '../../run.ts';
import type { Session } from '../../session.ts';
import { currentObject, pathOfTarget, type Target, targetsOf } from '../../targets.ts';

const ATTEMPTS = 10;

export const runApprove = (context: VerbContext): Promise<number> => decide(context, 'Approved', 'Denied', 'approve');
export const runDeny = (context: VerbContext): Promise<number> => decide(context, 'Denied', 'Approved', 'deny');

const decide = (context: VerbContext, type: string, opposite: string, verb: string): Promise<number> =>
  withSession(context, async (session) => {
    const { args, flags } = context;
    if (args.length === 0 && !flags.has('filename') && !flags.has('kustomize'))
      throw new ClientError('one or more CSRs must be specified as <name> or -f <filename>');
    const named = args.length === 0 ? [] : ['certificatesigningrequests.certificates.k8s.io', ...args];
    for (const target of await targetsOf(session, named)) {
      const object = await withCondition(session, target, { type, opposite, verb });
      await printOutcome(context, object, type.toLowerCase());
    }
    return 0;
  });

async function withCondition(
  session: Session,
  target: Target,
  { type, opposite, verb }: { readonly type: string; readonly opposite: string; readonly verb: string },
): Promise<AnyObject> {
  const { context } = session;
  for (let attempt = 1; ; attempt += 1) {
    const request = await currentObject(session, target);
    const conditions = listAt(request, 'status', 'conditions');
    if (conditions.some((each) => textAt(each, 'type') === opposite))
      throw new ClientError(`certificate signing request "${target.name}" is already ${opposite}`);
    const isPresent = conditions.some((each) => textAt(each, 'type') === type);
    if (isPresent && !context.flags.bool('force')) return request;
    const added = {
      type,
      status: 'True',
      reason: `Kubectl${verb === 'approve' ? 'Approve' : 'Deny'}`,
      message: `This CSR was ${type.toLowerCase()} by kubectl certificate ${verb}.`,
      lastUpdateTime: timestamp(context.system.now()),
    };
    const status = {
      ...(request['status'] as object | undefined),
      conditions: isPresent ? conditions : [...conditions, added],
    };
    try {
      return await session.send('PUT', pathOfTarget(target, 'approval'), { body: { ...request, status } });
    } catch (error) {
      if (!isApiError(error, 'Conflict') || attempt === ATTEMPTS) throw error;
    }
  }
}

/** `auth can-i` and `auth whoami`. Source: k8s.io/kubectl/pkg/cmd/auth. */
import { printable } from '../../../base/text/printable.ts';
import { ClientError } from '../../core/errors.ts';
import { type AnyObject, fieldAt, listAt, textAt } from '../../core/objects.ts';
import { RULE_COLUMNS, ruleRows } from '../../core/policy-rules.ts';
import { layout } from '../../core/table.ts';
import type { VerbContext } from '../../port.ts';
import { objectPrinter } from '../../printing.ts';
import { withSession } from '../../run.ts';
import type { Session } from '../../session.ts';

const REVIEWS = '/apis/authorization.k8s.io/v1';

export const runCanI = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, args, io } = context;
    if (flags.bool('list')) return list(session);
    const [verb, target, ...more] = args;
    if (verb === undefined || target === undefined || more.length > 1)
      throw new ClientError(
        "you must specify two arguments: verb resource or verb resource/resourceName.\nSee 'kubectl auth can-i -h' for help and examples.",
      );
    const namespace = flags.bool('all-namespaces') ? '' : session.namespace;
    let spec: object;
    if (target.startsWith('/')) spec = { nonResourceAttributes: { path: target, verb } };
    else {
      const [type = '', inline] = target.split('/');
      const [plain = '', subresource] = inline === undefined ? type.split(':') : [type];
      const name = inline ?? more[0];
      const found = (await session.resources()).find(plain);
      if (found === undefined && plain !== '*')
        io.err(`Warning: the server doesn't have a resource type '${plain}'\n\n`);
      else if (found !== undefined && !found.namespaced && plain !== '*' && !flags.bool('all-namespaces'))
        io.err(
          `Warning: resource '${found.name}' is not namespace scoped${found.group === '' ? '' : ` in group '${found.group}'`}\n\n`,
        );
      spec = {
        resourceAttributes: {
          verb,
          namespace,
          resource: found?.name ?? plain,
          group: found?.group ?? (plain === '*' ? '*' : ''),
          ...(name === undefined ? {} : { name }),
          ...(flags.text('subresource') === '' && subresource === undefined
            ? {}
            : { subresource: flags.text('subresource') || subresource }),
        },
      };
    }
    const review = await session.send('POST', `${REVIEWS}/selfsubjectaccessreviews`, {
      body: { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', spec },
    });
    const allowed = fieldAt(review, 'status', 'allowed') === true;
    const reason = textAt(review, 'status', 'reason');
    const problem = textAt(review, 'status', 'evaluationError');
    if (!flags.bool('quiet'))
      io.out(
        printable(
          allowed ? 'yes\n' : `no${reason === '' ? '' : ` - ${reason}`}${problem === '' ? '' : ` - ${problem}`}\n`,
        ),
      );
    return allowed ? 0 : 1;
  });

async function list(session: Session): Promise<number> {
  const { io, flags } = session.context;
  const review = await session.send('POST', `${REVIEWS}/selfsubjectrulesreviews`, {
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectRulesReview',
      spec: { namespace: session.namespace },
    },
  });
  const rows = ruleRows([
    ...listAt(review, 'status', 'resourceRules'),
    ...listAt(review, 'status', 'nonResourceRules'),
  ]);
  io.out(layout([...(flags.bool('no-headers') ? [] : [RULE_COLUMNS]), ...rows]));
  return 0;
}

export const runWhoAmI = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const review: AnyObject = await session.send('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
    });
    const printer = await objectPrinter(context);
    if (printer !== undefined) {
      context.io.out(printer(review));
      return 0;
    }
    const user = fieldAt(review, 'status', 'userInfo');
    const groups = fieldAt(user, 'groups');
    const extra = Object.entries((fieldAt(user, 'extra') ?? {}) as Record<string, string[]>);
    context.io.out(
      layout([
        ['ATTRIBUTE', 'VALUE'],
        ['Username', textAt(user, 'username')],
        ...(textAt(user, 'uid') === '' ? [] : [['UID', textAt(user, 'uid')]]),
        ...(Array.isArray(groups) ? [['Groups', `[${groups.join(' ')}]`]] : []),
        ...extra
          .sort(([left], [right]) => (left < right ? -1 : 1))
          .map(([key, values]) => [`Extra: ${key}`, `[${values.join(' ')}]`]),
      ]),
    );
    return 0;
  });

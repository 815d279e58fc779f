/** Code shared by the verbs `set …`: reads the objects, changes each one, and writes those that differ. */
import { isApiError } from '../../../api/meta/status.ts';
import { messageOf } from '../../../base/errors.ts';
import { ClientError } from '../../core/errors.ts';
import { type AnyObject, fieldAt, listAt } from '../../core/objects.ts';
import { mergePatchFor } from '../../core/three-way.ts';
import { manifestsOf } from '../../manifests.ts';
import type { VerbContext } from '../../port.ts';
import { dryRunOf, objectPrinter, printOutcome, writeQuery } from '../../printing.ts';
import { errorLine, withSession } from '../../run.ts';
import type { Session } from '../../session.ts';
import { currentObject, pathOfTarget, type Target, targetsOf } from '../../targets.ts';

export type MutableObject = Record<string, unknown>;

export interface SetChange {
  /** Text that is printed after the name, for example `image updated`. */
  readonly outcome: string;
  /** Prefix of the message for a change that the server rejects. */
  readonly failure: string;
  /** Whether the object is written and printed even if nothing differs. */
  readonly always?: boolean;
  /** Arguments that select the objects. */
  readonly targets: readonly string[];
  /**
   * Changes a copy of the object. `label` is the object's name in messages, such as `deployments/web`. Throws
   * ClientError.
   */
  edit(object: AnyObject, label: string, session: Session | undefined): Promise<void> | void;
}

/** Maximum number of attempts when other clients write the object concurrently. */
const ATTEMPTS = 5;

const WITHOUT_TARGET = `You must provide one or more resources by argument or filename.
Example resource specifications include:
   '-f rsrc.yaml'
   '--filename=rsrc.json'
   '<resource> <name>'
   '<resource>'`;

/** Changes all objects. Errors of single objects are printed at the end. */
export async function changeObjects(context: VerbContext, change: SetChange): Promise<number> {
  const { flags, io } = context;
  const errors: string[] = [];
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      errors.push(errorLine(error));
    }
  };
  if (flags.bool('local')) {
    const printer = await objectPrinter(context);
    for (const { object } of await manifestsOf(context))
      await attempt(async () => {
        const changed = structuredClone(object);
        await change.edit(changed, `${(object.kind ?? '').toLowerCase()}s/${object.metadata?.name ?? ''}`, undefined);
        if (printer === undefined) await printOutcome(context, changed, change.outcome);
        else io.out(printer(withDefaults(changed)));
      });
  } else
    await withSession(context, async (session) => {
      if (change.targets.length === 0 && !flags.has('filename') && !flags.has('kustomize'))
        throw new ClientError(WITHOUT_TARGET);
      for (const target of await targetsOf(session, change.targets))
        await attempt(() => changeOne(session, target, change));
      return 0;
    });
  for (const line of errors) io.err(`${line}\n`);
  return errors.length === 0 ? 0 : 1;
}

async function changeOne(session: Session, target: Target, change: SetChange): Promise<void> {
  const { context } = session;
  const label = `${target.resource.name}/${target.name}`;
  for (let attempt = 1; ; attempt += 1) {
    const live = await currentObject(session, target);
    const wanted = structuredClone(live);
    await change.edit(wanted, label, session);
    const patch = mergePatchFor(live, wanted);
    if (patch === undefined && change.always !== true) return;
    if (patch === undefined || dryRunOf(context.flags) === 'client')
      return printOutcome(context, wanted, change.outcome);
    // The patch replaces lists as a whole. The resourceVersion makes it fail if another client has changed the object.
    const metadata = { ...(patch['metadata'] as object | undefined), resourceVersion: live.metadata?.resourceVersion };
    try {
      const after = await session.send('PATCH', pathOfTarget(target), {
        query: writeQuery(context.flags, 'kubectl-set'),
        body: { ...patch, metadata },
        contentType: 'application/merge-patch+json',
      });
      return await printOutcome(context, after, change.outcome);
    } catch (error) {
      if (isApiError(error, 'Conflict') && attempt < ATTEMPTS) continue;
      throw new ClientError(`${change.failure} ${messageOf(error)}`);
    }
  }
}

/** Splits arguments into those before the first pair, and the pairs. Throws ClientError for an object after a pair. */
export function resourcesAndPairs(
  args: readonly string[],
  what: string,
): { readonly resources: readonly string[]; readonly pairs: readonly string[] } {
  const isPair = (text: string): boolean =>
    (text.includes('=') && !text.startsWith('=')) || (text.endsWith('-') && text !== '-');
  const first = args.findIndex(isPair);
  const [resources, pairs] = first < 0 ? [args, []] : [args.slice(0, first), args.slice(first)];
  const late = pairs.find((each) => !isPair(each));
  if (late !== undefined) throw new ClientError(`all resources must be specified before ${what} changes: ${late}`);
  return { resources, pairs };
}

/** The pod spec inside of a pod or workload. Throws ClientError for other kinds. */
export function podSpecOf(object: AnyObject, label: string): MutableObject {
  const spec =
    object.kind === 'Pod'
      ? object['spec']
      : object.kind === 'CronJob'
        ? fieldAt(object, 'spec', 'jobTemplate', 'spec', 'template', 'spec')
        : fieldAt(object, 'spec', 'template', 'spec');
  if (typeof spec !== 'object' || spec === null)
    throw new ClientError(`${label} the object is not a pod or does not have a pod template: *${goType(object)}`);
  return spec as MutableObject;
}

const goType = ({ apiVersion = '', kind = '' }: AnyObject): string => `${apiVersion.split('/').at(-1)}.${kind}`;

/** Containers of a pod spec whose names match `pattern`, which is a name or a pattern such as `*`. */
export function containersOf(spec: MutableObject, pattern: string, field = 'containers'): MutableObject[] {
  const matches = new RegExp(
    `^${pattern
      .replaceAll(/[.+^${}()|[\]\\]/g, '\\$&')
      .replaceAll('*', '.*')
      .replaceAll('?', '.')}$`,
  );
  return (listAt(spec, field) as MutableObject[]).filter(({ name }) => matches.test(String(name)));
}

/** Adds the fields that Go's types always print. */
function withDefaults(object: AnyObject): AnyObject {
  const spec = object['spec'] as MutableObject | undefined;
  const template = fieldAt(spec, 'template');
  if (spec === undefined || template === undefined) return object;
  const podSpec = fieldAt(template, 'spec') as MutableObject | undefined;
  const containers = listAt(podSpec, 'containers').map((each) => ({ resources: {}, ...each }));
  return {
    ...object,
    spec: {
      ...(object.kind === 'Deployment' ? { strategy: {} } : object.kind === 'DaemonSet' ? { updateStrategy: {} } : {}),
      ...spec,
      template: { ...(template as object), spec: { ...podSpec, containers } },
    },
    status: object['status'] ?? {},
  };
}

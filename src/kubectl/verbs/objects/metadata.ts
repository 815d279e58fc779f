/** `label` and `annotate`: change labels and annotations of objects. Source: k8s.io/kubectl/pkg/cmd/label, annotate. */
import { ClientError } from '../../core/errors.ts';
import { type AnyObject, mapAt } from '../../core/objects.ts';
import { requiredManifests } from '../../manifests.ts';
import type { VerbContext } from '../../port.ts';
import { dryRunOf, nameOf, objectPrinter, printOutcome, writeQuery } from '../../printing.ts';
import { withSession } from '../../run.ts';
import { currentObject, pathOfTarget, targetsOf } from '../../targets.ts';

export const runLabel = (context: VerbContext): Promise<number> => change(context, 'labels');
export const runAnnotate = (context: VerbContext): Promise<number> => change(context, 'annotations');

interface Changes {
  readonly set: Readonly<Record<string, string>>;
  readonly remove: readonly string[];
}

/** Changes the objects of the files and prints them, without a request (`--local`). */
async function changeLocally(context: VerbContext, field: 'labels' | 'annotations'): Promise<number> {
  const { set, remove } = changesOf(context.args, field);
  for (const { object } of await requiredManifests(context, 'the verb')) {
    const values = Object.fromEntries(
      Object.entries({ ...mapAt(object, 'metadata', field), ...set }).filter(([key]) => !remove.includes(key)),
    );
    const changed = { ...object, metadata: { ...object.metadata, [field]: values } };
    await printOutcome(context, changed, field === 'labels' ? 'labeled' : 'annotated');
  }
  return 0;
}

function change(context: VerbContext, field: 'labels' | 'annotations'): Promise<number> {
  if (context.flags.bool('local')) return changeLocally(context, field);
  return withSession(context, async (session) => {
    const { flags, args, io } = context;
    const pairs = args.filter(isPair);
    const named = args.filter((each) => !isPair(each));
    const changes = changesOf(pairs, field);
    const isList = flags.bool('list');
    if (pairs.length === 0 && !isList)
      throw new ClientError(`at least one ${field === 'labels' ? 'label' : 'annotation'} update is required`);
    const verb = field === 'labels' ? 'labeled' : 'annotated';
    const opposite = field === 'labels' ? 'unlabeled' : 'annotated';
    for (const target of await targetsOf(session, named)) {
      const before =
        target.object !== undefined && target.source === undefined
          ? target.object
          : await currentObject(session, target);
      const current = mapAt(before, 'metadata', field);
      if (isList) {
        for (const [key, value] of Object.entries(current).sort(([left], [right]) => (left < right ? -1 : 1)))
          io.out(`${key}=${value}\n`);
        if (pairs.length === 0) continue;
      }
      refuseOverwrite(context, before, current, changes, field);
      const changesNothing =
        Object.entries(changes.set).every(([key, value]) => current[key] === value) &&
        changes.remove.every((key) => !(key in current));
      for (const key of changes.remove)
        if (!(key in current) && field === 'labels') io.out(`label ${JSON.stringify(key)} not found.\n`);
      const outcome = changesNothing ? `not ${verb}` : Object.keys(changes.set).length === 0 ? opposite : verb;
      if (changesNothing || dryRunOf(flags) === 'client') {
        const shown = changesNothing
          ? before
          : { ...before, metadata: { ...before.metadata, [field]: { ...current, ...changes.set } } };
        if ((await objectPrinter(context)) === undefined && field === 'annotations' && changesNothing)
          io.out(`${nameOf(shown)} ${verb}\n`);
        else await printOutcome(context, shown, outcome);
        continue;
      }
      const values = { ...changes.set, ...Object.fromEntries(changes.remove.map((key) => [key, null])) };
      const resourceVersion = flags.text('resource-version') || undefined;
      const after = await session.send('PATCH', pathOfTarget(target), {
        query: writeQuery(flags, field === 'labels' ? 'kubectl-label' : 'kubectl-annotate'),
        body: { metadata: { [field]: values, ...(resourceVersion === undefined ? {} : { resourceVersion }) } },
        contentType: 'application/merge-patch+json',
      });
      await printOutcome(context, after, outcome);
    }
    return 0;
  });
}

const isPair = (text: string): boolean =>
  /^[^=]+=/.test(text) || (/-$/.test(text) && text.length > 1 && !text.includes('/-'));

function changesOf(pairs: readonly string[], field: string): Changes {
  const set: Record<string, string> = {};
  const remove: string[] = [];
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    if (at < 0) remove.push(pair.slice(0, -1));
    else set[pair.slice(0, at)] = pair.slice(at + 1);
  }
  const [both] = remove.filter((key) => key in set);
  if (both !== undefined)
    throw new ClientError(
      `can not both modify and remove ${field === 'labels' ? 'a label' : 'an annotation'} in the same command`,
    );
  return { set, remove };
}

function refuseOverwrite(
  context: VerbContext,
  object: AnyObject,
  current: Readonly<Record<string, string>>,
  { set }: Changes,
  field: string,
): void {
  if (context.flags.bool('overwrite')) return;
  const [existing] = Object.entries(set).filter(([key, value]) => key in current && current[key] !== value);
  if (existing === undefined) return;
  const [key] = existing;
  throw new ClientError(
    field === 'labels'
      ? `'${key}' already has a value (${current[key]}), and --overwrite is false`
      : `--overwrite is false but found the following declared annotation(s): '${key}' already has a value (${current[key]})${object.kind === undefined ? '' : ''}`,
  );
}

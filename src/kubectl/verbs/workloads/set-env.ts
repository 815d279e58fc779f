/** `set env`: environment variables of containers. Source: k8s.io/kubectl/pkg/cmd/set/set_env.go. */
import { ClientError } from '../../core/errors.ts';
import { type AnyObject, fieldAt, listAt, mapAt, textAt } from '../../core/objects.ts';
import type { VerbContext } from '../../port.ts';
import { withSession } from '../../run.ts';
import type { Session } from '../../session.ts';
import { currentObject, oneTarget, targetsOf } from '../../targets.ts';
import { changeObjects, containersOf, podSpecOf, resourcesAndPairs } from './set-change.ts';

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: object;
}

export async function runEnv(context: VerbContext): Promise<number> {
  const { flags, io } = context;
  const { resources, pairs } = resourcesAndPairs(context.args, 'environment');
  const given = [...pairs, ...flags.all('env').filter((each) => each !== '-')];
  if (flags.all('env').includes('-')) given.push(...lines(await io.readAll()));
  const removed = given.filter((each) => !each.includes('=') && each.endsWith('-')).map((each) => each.slice(0, -1));
  const set: Variable[] = given
    .filter((each) => each.includes('='))
    .map((each) => ({ name: each.slice(0, each.indexOf('=')), value: each.slice(each.indexOf('=') + 1) }));
  for (const { name } of set) {
    if (!/^[-._a-zA-Z][-._a-zA-Z0-9]*$/.test(name))
      throw new ClientError(`"${name}" is not a valid key name; use letters, digits, '_', '-' and '.'`);
    if (removed.includes(name))
      throw new ClientError(`can not both modify and remove an environment variable: ${name}`);
  }
  const pattern = flags.text('containers') || '*';
  if (flags.bool('list')) return list(context, resources, pattern);
  let imported: readonly Variable[] | undefined;
  return changeObjects(context, {
    outcome: 'env updated',
    failure: 'failed to patch env update to pod template:',
    targets: resources,
    edit: async (object, label, session) => {
      if (flags.text('from') !== '' && imported === undefined) {
        if (session === undefined) throw new ClientError('--from needs a server; leave out --local');
        imported = await variablesOf(session);
      }
      const variables = [...set, ...(imported ?? [])];
      const spec = podSpecOf(object, label);
      const containers = [...containersOf(spec, pattern), ...containersOf(spec, pattern, 'initContainers')];
      if (containers.length === 0)
        io.err(`Warning: ${object.kind}/${object.metadata?.name} does not have any containers matching "${pattern}"\n`);
      for (const container of containers) {
        const before = (container['env'] ?? []) as Variable[];
        if (flags.text('overwrite') === 'false') refuseOverwrite(before, variables, label);
        const after = merged(before, variables, removed);
        if (after.length > 0) container['env'] = after;
        else delete container['env'];
      }
    },
  });
}

const lines = (text: string): string[] => text.split('\n').filter((line) => /^[^#=\s][^=]*=/.test(line));

function refuseOverwrite(before: readonly Variable[], variables: readonly Variable[], label: string): void {
  for (const { name, value } of variables) {
    const known = before.find((each) => each.name === name);
    if (known !== undefined && known.value !== value)
      throw new ClientError(`${label} '${name}' already has a value (${known.value ?? ''}), and --overwrite is false`);
  }
}

function merged(before: readonly Variable[], variables: readonly Variable[], removed: readonly string[]): Variable[] {
  const find = (name: string): Variable | undefined => variables.find((each) => each.name === name);
  const kept = before.filter(({ name }) => !removed.includes(name)).map((each) => find(each.name) ?? each);
  const isNew = ({ name }: Variable, index: number): boolean =>
    !kept.some((each) => each.name === name) && variables.findIndex((each) => each.name === name) === index;
  return [...kept, ...variables.filter(isNew)];
}

/** Environment variables for the keys of the config map or secret that `--from` names. */
async function variablesOf(session: Session): Promise<Variable[]> {
  const { flags, io } = session.context;
  const target = await oneTarget(session, [flags.text('from')], 'configmaps');
  const kind = target.resource.kind;
  if (kind !== 'ConfigMap' && kind !== 'Secret')
    throw new ClientError(
      `unsupported resource specified in --from: ${flags.text('from')}; use configmap/NAME or secret/NAME`,
    );
  const object = await currentObject(session, target);
  const wanted = flags.list('keys');
  return Object.keys(mapAt(object, 'data'))
    .sort()
    .filter((key) => wanted.length === 0 || wanted.includes(key))
    .map((key) => {
      const name = key.toUpperCase().replaceAll(/[^A-Z0-9_]/g, '_');
      if (name !== key) io.err(`Warning: key ${key} transferred to ${name}\n`);
      const reference = { key, name: target.name };
      return {
        name: flags.text('prefix') + name,
        valueFrom: kind === 'Secret' ? { secretKeyRef: reference } : { configMapKeyRef: reference },
      };
    });
}

const list = (context: VerbContext, names: readonly string[], pattern: string): Promise<number> =>
  withSession(context, async (session) => {
    const { io, flags } = context;
    for (const target of await targetsOf(session, names)) {
      const object = target.source === undefined ? await currentObject(session, target) : (target.object as AnyObject);
      const spec = podSpecOf(object, `${target.resource.name}/${target.name}`);
      for (const container of [...containersOf(spec, pattern), ...containersOf(spec, pattern, 'initContainers')]) {
        io.out(`# ${object.kind} ${target.name}, container ${String(container['name'])}\n`);
        for (const variable of listAt(container, 'env')) {
          const name = textAt(variable, 'name');
          if (variable['valueFrom'] === undefined) io.out(`${name}=${textAt(variable, 'value')}\n`);
          else if (!flags.bool('resolve')) io.out(`# ${name} from ${referenceText(variable['valueFrom'])}\n`);
          else io.out(`${name}=${await resolved(session, object, variable['valueFrom'])}\n`);
        }
      }
    }
    return 0;
  });

function referenceText(from: unknown): string {
  const key = (field: string): string => textAt(from, field, 'key');
  const name = (field: string): string => textAt(from, field, 'name');
  if (fieldAt(from, 'configMapKeyRef') !== undefined)
    return `configmap ${name('configMapKeyRef')}, key ${key('configMapKeyRef')}`;
  if (fieldAt(from, 'secretKeyRef') !== undefined) return `secret ${name('secretKeyRef')}, key ${key('secretKeyRef')}`;
  if (fieldAt(from, 'fieldRef') !== undefined) return `field path ${textAt(from, 'fieldRef', 'fieldPath')}`;
  if (fieldAt(from, 'resourceFieldRef') !== undefined) {
    const container = textAt(from, 'resourceFieldRef', 'containerName');
    return `resource ${textAt(from, 'resourceFieldRef', 'resource')}${container === '' ? '' : ` of container ${container}`}`;
  }
  return 'invalid valueFrom';
}

async function resolved(session: Session, object: AnyObject, from: unknown): Promise<string> {
  for (const [field, type] of [
    ['configMapKeyRef', 'configmaps'],
    ['secretKeyRef', 'secrets'],
  ] as const) {
    const name = textAt(from, field, 'name');
    if (name === '') continue;
    const source = await session.object(await session.resource(type), object.metadata?.namespace, name);
    const value = mapAt(source, 'data')[textAt(from, field, 'key')] ?? '';
    return type === 'secrets' ? Buffer.from(value, 'base64').toString('utf8') : value;
  }
  const path = textAt(from, 'fieldRef', 'fieldPath');
  return path === '' ? '' : textAt(object, ...path.split('.'));
}

/**
 * Finds the objects of a verb: `TYPE NAME…`, `TYPE/NAME…`, `TYPE -l SELECTOR`, `TYPE --all` and `-f FILE`.
 */
import { ClientError } from './core/errors.ts';
import type { FlagSpecs } from './core/flags.ts';
import { type AnyObject, fieldAt } from './core/objects.ts';
import { pathOf, type ResourceInfo } from './core/resources.ts';
import { FILE_FLAGS, manifestsOf } from './manifests.ts';
import type { Session } from './session.ts';

export const SELECTOR_FLAGS: FlagSpecs = {
  selector: { type: 'string', short: 'l', value: 'SELECTOR', help: 'label selector, such as app=web,tier!=db' },
  'field-selector': { type: 'string', value: 'SELECTOR', help: 'field selector, such as status.phase=Running' },
};

export const TARGET_FLAGS: FlagSpecs = {
  ...FILE_FLAGS,
  ...SELECTOR_FLAGS,
  all: { type: 'bool', help: 'all objects of the type in the namespace' },
  'all-namespaces': { type: 'bool', short: 'A', help: 'objects of all namespaces' },
};

export interface Target {
  readonly resource: ResourceInfo;
  readonly namespace: string | undefined;
  readonly name: string;
  /** The object as read from a manifest or list. */
  readonly object?: AnyObject;
  /** File that contains the manifest. */
  readonly source?: string;
}

/**
 * Resources and names in arguments, which are either all `TYPE/NAME` or one list of types with names. Throws
 * ClientError with kubectl's message.
 */
export interface NamedResources {
  readonly resources: readonly ResourceInfo[];
  /** Names of the objects; empty for all objects of the resources. */
  readonly names: readonly string[];
}

export async function namedResources(session: Session, args: readonly string[]): Promise<NamedResources[]> {
  const [first, ...rest] = args;
  if (first === undefined)
    throw new ClientError(
      `You must specify the type of resource. Use "${session.context.program} api-resources" for a complete list of ` +
        'supported resources.',
    );
  if (args.some((each) => each.includes('/'))) {
    return Promise.all(
      args.map(async (each) => {
        const [type = '', name = '', more] = each.split('/');
        if (!each.includes('/'))
          throw new ClientError(
            'there is no need to specify a resource type as a separate argument when passing arguments in ' +
              `resource/name form (e.g. '${session.context.program} get resource/<resource_name>' instead of ` +
              `'${session.context.program} get resource resource/<resource_name>'`,
          );
        if (type === '' || name === '' || more !== undefined)
          throw new ClientError('arguments in resource/name form must have a single resource and name');
        return { resources: [await session.resource(type)], names: [name] };
      }),
    );
  }
  return [{ resources: await session.expand(first), names: rest }];
}

export interface TargetOptions {
  /** Label selector; by default that of `--selector`. */
  readonly selector?: string;
  /** Whether a type without names selects all objects of the type. */
  readonly isWholeType?: boolean;
}

/** Objects that the arguments or `-f` select. Objects that are named directly are not read. */
export async function targetsOf(
  session: Session,
  args: readonly string[] = session.context.args,
  options: TargetOptions = {},
): Promise<Target[]> {
  const { flags } = session.context;
  const { selector = flags.text('selector'), isWholeType = false } = options;
  if (flags.has('filename') || flags.has('kustomize')) {
    if (args.length > 0)
      throw new ClientError(
        'when paths, URLs, or stdin is provided as input, you may not specify resource arguments as well',
      );
    const manifests = await manifestsOf(session.context, selector);
    return Promise.all(
      manifests.map(async ({ object, source }) => {
        const { resource, namespace } = await session.place(object);
        return { resource, namespace, name: object.metadata?.name ?? '', object, source };
      }),
    );
  }
  const fieldSelector = flags.text('field-selector');
  const isAll = flags.bool('all');
  const allNamespaces = flags.bool('all-namespaces');
  const targets: Target[] = [];
  for (const { resources, names } of await namedResources(session, args))
    for (const resource of resources) {
      const namespace = session.namespaceFor(resource, allNamespaces);
      if (names.length > 0) {
        if (selector !== '') throw new ClientError('name cannot be provided when a selector is specified');
        if (isAll) throw new ClientError('name cannot be provided when a selector is specified');
        for (const name of names) targets.push({ resource, namespace, name });
        continue;
      }
      if (!isAll && !isWholeType && selector === '' && fieldSelector === '')
        throw new ClientError('resource(s) were provided, but no name was specified');
      const items = await session.list(resource, namespace, { labelSelector: selector, fieldSelector });
      for (const object of items)
        targets.push({
          resource,
          object,
          name: object.metadata?.name ?? '',
          namespace: resource.namespaced ? object.metadata?.namespace : undefined,
        });
    }
  return targets;
}

export const pathOfTarget = ({ resource, namespace, name }: Target, subresource?: string): string =>
  pathOf(resource, namespace, name, subresource);

/** The current object of a target, or of its subresource. */
export const currentObject = (session: Session, target: Target, subresource?: string): Promise<AnyObject> =>
  session.get(pathOfTarget(target, subresource));

/** The only target of a verb such as `logs` or `exec`. `fallback` is the type if the argument has none. */
export async function oneTarget(session: Session, args: readonly string[], fallback: string): Promise<Target> {
  const [first = '', second, ...more] = args;
  if (more.length > 0) throw new ClientError('expected one object');
  if (first.includes('/')) {
    const [type = '', name = ''] = first.split('/');
    const resource = await session.resource(type);
    return { resource, namespace: session.namespaceFor(resource), name };
  }
  const resource = await session.resource(second === undefined ? fallback : first);
  return { resource, namespace: session.namespaceFor(resource), name: second ?? first };
}

/** Label selector for the pods of a workload or service. Throws ClientError if the object does not select pods. */
export function podSelectorOf(object: AnyObject): string {
  const simple = fieldAt(object, 'spec', 'selector');
  const labels = fieldAt(object, 'spec', 'selector', 'matchLabels') ?? (hasOnlyTexts(simple) ? simple : undefined);
  const expressions = fieldAt(object, 'spec', 'selector', 'matchExpressions');
  const parts = [
    ...Object.entries((labels ?? {}) as Record<string, string>).map(([key, value]) => `${key}=${value}`),
    ...(Array.isArray(expressions) ? expressions.map(requirement) : []),
  ];
  if (parts.length === 0)
    throw new ClientError(
      `${object.kind ?? ''} ${object.metadata?.name ?? ''}: has no selector of pods; name a pod instead`,
    );
  return parts.join(',');
}

const hasOnlyTexts = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && Object.values(value).every((each) => typeof each === 'string');

function requirement(expression: { key?: string; operator?: string; values?: string[] }): string {
  const { key = '', operator = '', values = [] } = expression;
  switch (operator) {
    case 'In':
      return `${key} in (${values.join(',')})`;
    case 'NotIn':
      return `${key} notin (${values.join(',')})`;
    case 'DoesNotExist':
      return `!${key}`;
    default:
      return key;
  }
}

/** Pods of a target: the pod itself, or the pods that a workload or service selects, in kubectl's order. */
export async function podsOf(session: Session, target: Target): Promise<AnyObject[]> {
  const object = await currentObject(session, target);
  if (object.kind === 'Pod') return [object];
  const pods = await session.resource('pods');
  const found = await session.list(pods, target.namespace, { labelSelector: podSelectorOf(object) });
  return found.sort(byReadiness);
}

/** Sorts running and ready pods first, then older pods. Source: k8s.io/kubectl/pkg/util/podutils ByLogging. */
function byReadiness(left: AnyObject, right: AnyObject): number {
  return (
    rank(left) - rank(right) ||
    (left.metadata?.creationTimestamp ?? '').localeCompare(right.metadata?.creationTimestamp ?? '')
  );
}

function rank(pod: AnyObject): number {
  const conditions = (fieldAt(pod, 'status', 'conditions') ?? []) as { type?: string; status?: string }[];
  const isReady = conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
  if (isReady) return 0;
  const phase = fieldAt(pod, 'status', 'phase');
  if (phase === 'Running') return 1;
  return phase === 'Pending' ? 2 : 3;
}

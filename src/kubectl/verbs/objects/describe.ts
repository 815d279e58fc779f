/** `describe`: prints a page about each object, with its events. */
import { isApiError } from '../../../api/meta/status.ts';
import { ClientError } from '../../core/errors.ts';
import type { AnyObject } from '../../core/objects.ts';
import { pathOf } from '../../core/resources.ts';
import { describeAny } from '../../describe/generic.ts';
import { describeNode } from '../../describe/node.ts';
import { PAGES } from '../../describe/pages.ts';
import type { VerbContext } from '../../port.ts';
import { errorLine, withSession } from '../../run.ts';
import type { Session } from '../../session.ts';
import { currentObject, namedResources, type Target, targetsOf } from '../../targets.ts';
import { relatedOf } from './describe-related.ts';
import { byTime } from './events.ts';

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { io, flags } = context;
    const { targets, errors } = await describedTargets(session);
    if (targets.length === 0 && errors.length === 0) {
      io.err(
        flags.bool('all-namespaces')
          ? 'No resources found\n'
          : `No resources found in ${session.namespace} namespace.\n`,
      );
      return 0;
    }
    // As with kubectl, pages of several objects have no events unless they are requested.
    const isOne = targets.length === 1 && errors.length === 0;
    const withEvents = flags.has('show-events') ? flags.text('show-events') !== 'false' : isOne;
    const byPrefix = targets.some((target) => target.byPrefix);
    let isFirst = true;
    for (const target of targets) {
      const page = await pageOf(session, target, withEvents && !byPrefix).catch((error: unknown) => {
        errors.push(error);
        return undefined;
      });
      if (page === undefined) continue;
      // Objects that match by a name prefix are printed one by one.
      io.out(byPrefix ? `${page}\n` : `${isFirst ? '' : '\n\n'}${page}`);
      isFirst = false;
    }
    for (const text of new Set(errors.map((error) => errorLine(error)))) io.err(`${text}\n`);
    return errors.length > 0 ? 1 : 0;
  });

interface Described extends Target {
  readonly byPrefix?: boolean;
}

interface Found {
  readonly targets: Described[];
  /** Errors of the requests for objects that could not be read. */
  readonly errors: unknown[];
}

/** Objects that are named, all objects of a type, or objects whose name begins with the argument. */
async function describedTargets(session: Session): Promise<Found> {
  const { args, flags } = session.context;
  if (flags.has('filename') || flags.has('kustomize') || flags.text('selector') !== '')
    return { targets: await targetsOf(session), errors: [] };
  if (args.length === 0)
    throw new ClientError(
      `You must specify the type of resource to describe. Use "${session.context.program} api-resources" for a complete list of supported resources.`,
    );
  const found: Found = { targets: [], errors: [] };
  for (const { resources, names } of await namedResources(session, args))
    for (const resource of resources) {
      const namespace = session.namespaceFor(resource, flags.bool('all-namespaces'));
      const all = async (prefix: string): Promise<Target[]> =>
        (await session.list(resource, namespace))
          .filter(({ metadata }) => metadata?.name?.startsWith(prefix) === true)
          .map((object) => ({
            resource,
            name: object.metadata?.name ?? '',
            namespace: resource.namespaced ? object.metadata?.namespace : undefined,
            object,
          }));
      if (names.length === 0) found.targets.push(...(await all('')));
      for (const name of names) {
        try {
          found.targets.push({ resource, namespace, name, object: await session.object(resource, namespace, name) });
        } catch (error) {
          const isPrefix = args.length === 2 && names.length === 1 && isApiError(error, 'NotFound');
          const matching = isPrefix ? await all(name) : [];
          if (matching.length === 0) found.errors.push(error);
          found.targets.push(...matching.map((target) => ({ ...target, byPrefix: true })));
        }
      }
    }
  return found;
}

async function pageOf(session: Session, target: Described, withEvents: boolean): Promise<string> {
  const object = {
    apiVersion: '',
    kind: target.resource.kind,
    ...(target.object !== undefined && target.source === undefined
      ? target.object
      : await currentObject(session, target)),
  };
  const now = session.context.system.now();
  const events = withEvents ? await eventsOf(session, object) : undefined;
  const key = `${target.resource.group}/${target.resource.kind}`;
  if (key === '/Node') {
    const { pods, lease } = await aroundNode(session, target.name);
    return describeNode(object, { now, events, pods, lease });
  }
  const page = PAGES[key];
  if (page === undefined) return describeAny(object, events, now);
  return page(object, await relatedOf(session, { object, key, events }, target));
}

async function aroundNode(
  session: Session,
  name: string,
): Promise<{ readonly pods: readonly AnyObject[] | undefined; readonly lease: AnyObject | Error }> {
  const index = await session.resources();
  const fieldSelector = `spec.nodeName=${name},status.phase!=Failed,status.phase!=Succeeded`;
  // Pods and lease may be forbidden to the user. The page then shows this.
  const [pods, lease] = await Promise.all([
    session.list(index.get('pods'), undefined, { fieldSelector }).catch(() => undefined),
    session.object(index.get('leases.coordination.k8s.io'), 'kube-node-lease', name).catch((error: Error) => error),
  ]);
  return { pods, lease };
}

async function eventsOf(session: Session, object: AnyObject): Promise<AnyObject[]> {
  const events = await session.resource('events');
  const { name = '', namespace, uid } = object.metadata ?? {};
  // Events about nodes contain the name of the node as UID, so the UID is not part of the selector.
  const about = object.kind === 'Node' ? '' : `,involvedObject.uid=${uid ?? ''}`;
  const selector = `involvedObject.name=${name},involvedObject.kind=${object.kind ?? ''}${about}`;
  try {
    const list = await session.get(pathOf(events, namespace), { fieldSelector: selector });
    return [...(list.items ?? [])].sort(byTime);
  } catch (error) {
    if (isApiError(error, 'Forbidden')) return [];
    throw error;
  }
}

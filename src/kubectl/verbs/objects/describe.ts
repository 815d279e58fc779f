/** `describe`: prints a page about each object, with its events. */
import { isApiError } from '../../../api/meta/status.ts';
import type { AnyObject } from '../../core/objects.ts';
import { pathOf } from '../../core/resources.ts';
import { describeAny } from '../../describe/generic.ts';
import { describeNode } from '../../describe/node.ts';
import { describePod } from '../../describe/pod-template.ts';
import {
  describeConfigMap,
  describeDaemonSet,
  describeDeployment,
  describeJob,
  describeNamespace,
  describeReplicaSet,
  describeSecret,
  describeService,
  describeServiceAccount,
  describeStatefulSet,
  type Related,
} from '../../describe/workloads.ts';
import type { VerbContext } from '../../port.ts';
import { withSession } from '../../run.ts';
import type { Session } from '../../session.ts';
import { currentObject, namedResources, podSelectorOf, type Target, targetsOf } from '../../targets.ts';
import { byTime } from './events.ts';

type Describer = (object: AnyObject, related: Related) => string;

/** Pages by group and kind. Objects of other kinds get a generic page with all their fields. */
const PAGES: Readonly<Record<string, Describer>> = {
  '/Pod': (object, { events, now }) => describePod(object, events, now),
  '/Service': describeService,
  '/ConfigMap': describeConfigMap,
  '/Secret': describeSecret,
  '/ServiceAccount': describeServiceAccount,
  '/Namespace': describeNamespace,
  'apps/Deployment': describeDeployment,
  'apps/ReplicaSet': describeReplicaSet,
  'apps/DaemonSet': describeDaemonSet,
  'apps/StatefulSet': describeStatefulSet,
  'batch/Job': describeJob,
};

const WITH_PODS: ReadonlySet<string> = new Set(['apps/ReplicaSet', 'apps/DaemonSet', 'apps/StatefulSet']);

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const targets = await describedTargets(session);
    if (targets.length === 0) {
      context.io.err(
        context.flags.bool('all-namespaces')
          ? 'No resources found\n'
          : `No resources found in ${session.namespace} namespace.\n`,
      );
      return 0;
    }
    const pages: string[] = [];
    for (const target of targets) pages.push(await pageOf(session, target));
    // Objects that match by a name prefix are printed one by one, without events.
    context.io.out(targets.some(({ byPrefix }) => byPrefix) ? `${pages.join('\n')}\n` : pages.join('\n\n'));
    return 0;
  });

interface Described extends Target {
  readonly byPrefix?: boolean;
}

/** Objects that are named, all objects of a type, or objects whose name begins with the argument. */
async function describedTargets(session: Session): Promise<Described[]> {
  const { args, flags } = session.context;
  if (flags.has('filename') || flags.text('selector') !== '') return targetsOf(session);
  const found: Described[] = [];
  for (const { resources, names } of await namedResources(session, args))
    for (const resource of resources) {
      const namespace = session.namespaceFor(resource, flags.bool('all-namespaces'));
      const all = (objects: readonly AnyObject[]): Target[] =>
        objects.map((object) => ({
          resource,
          name: object.metadata?.name ?? '',
          namespace: resource.namespaced ? object.metadata?.namespace : undefined,
          object,
        }));
      if (names.length === 0) found.push(...all(await session.list(resource, namespace)));
      for (const name of names) {
        try {
          found.push({ resource, namespace, name, object: await session.object(resource, namespace, name) });
        } catch (error) {
          if (!isApiError(error, 'NotFound')) throw error;
          const matching = (await session.list(resource, namespace)).filter(
            (object) => object.metadata?.name?.startsWith(name) === true,
          );
          if (matching.length === 0) throw error;
          found.push(...all(matching).map((target) => ({ ...target, byPrefix: true })));
        }
      }
    }
  return found;
}

async function pageOf(session: Session, target: Described): Promise<string> {
  const { flags, system } = session.context;
  const object = {
    apiVersion: '',
    kind: target.resource.kind,
    ...(target.object !== undefined && target.source === undefined
      ? target.object
      : await currentObject(session, target)),
  };
  const now = system.now();
  const events =
    flags.text('show-events') === 'false' || target.byPrefix === true ? undefined : await eventsOf(session, object);
  const key = `${target.resource.group}/${target.resource.kind}`;
  if (key === '/Node') {
    const { pods, lease } = await aroundNode(session, target.name);
    return describeNode(object, { now, events, pods, lease });
  }
  const page = PAGES[key];
  if (page === undefined) return describeAny(object, events, now);
  const index = await session.resources();
  const isOwned = (each: AnyObject): boolean =>
    (each.metadata?.ownerReferences ?? []).some(({ uid }) => uid === object.metadata?.uid);
  const selected = (resource: string, selector: string): Promise<AnyObject[]> =>
    session.list(index.get(resource), target.namespace, { labelSelector: selector }).catch(() => []);
  return page(object, {
    now,
    events,
    pods: WITH_PODS.has(key) ? (await selected('pods', podSelectorOf(object))).filter(isOwned) : [],
    replicaSets:
      key === 'apps/Deployment' ? (await selected('replicasets.apps', podSelectorOf(object))).filter(isOwned) : [],
    endpointSlices:
      key === '/Service'
        ? await selected('endpointslices.discovery.k8s.io', `kubernetes.io/service-name=${target.name}`)
        : [],
  });
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

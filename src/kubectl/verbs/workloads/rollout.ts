/**
 * `rollout`: status, history, undo, restart, pause and resume of workloads.
 * Source: k8s.io/kubectl/pkg/polymorphichelpers.
 */
import { timestamp } from '../../../base/time/timestamps.ts';
import { parseGoDuration } from '../../core/durations.ts';
import { ClientError } from '../../core/errors.ts';
import { type AnyObject, fieldAt, LAST_APPLIED, listAt, numberAt, textAt } from '../../core/objects.ts';
import { printedKind } from '../../core/resources.ts';
import { layout } from '../../core/table.ts';
import { describePodTemplate } from '../../describe/pod-template.ts';
import type { VerbContext } from '../../port.ts';
import { dryRunOf, dryRunSuffix, printOutcome, writeQuery } from '../../printing.ts';
import { withSession } from '../../run.ts';
import type { Session } from '../../session.ts';
import { currentObject, pathOfTarget, podSelectorOf, type Target, targetsOf } from '../../targets.ts';

const POLL_MS = 500;
const REVISION = 'deployment.kubernetes.io/revision';
const CHANGE_CAUSE = 'kubernetes.io/change-cause';
const RESTARTED_AT = 'kubectl.kubernetes.io/restartedAt';

/** Workloads of the arguments. A type without names selects all workloads of the type. */
async function workloads(session: Session): Promise<Target[]> {
  const { args, flags } = session.context;
  if (args.length === 0 && !flags.has('filename') && !flags.has('kustomize'))
    throw new ClientError('required resource not specified');
  return targetsOf(session, args, { isWholeType: true });
}

interface Progress {
  readonly message: string;
  readonly isDone: boolean;
}

/**
 * State of a roll-out. Throws ClientError if the roll-out has failed or the object's strategy does not support a
 * status.
 */
export function rolloutProgress(object: AnyObject): Progress {
  const name = object.metadata?.name ?? '';
  const observed = numberAt(object, 0, 'status', 'observedGeneration');
  const generation = object.metadata?.generation ?? 0;
  switch (object.kind) {
    case 'Deployment': {
      if (generation > observed)
        return { message: 'Waiting for deployment spec update to be observed...\n', isDone: false };
      const failed = listAt(object, 'status', 'conditions').find(
        ({ type, reason }) => type === 'Progressing' && reason === 'ProgressDeadlineExceeded',
      );
      if (failed !== undefined)
        throw new ClientError(`deployment ${JSON.stringify(name)} exceeded its progress deadline`);
      const wanted = numberAt(object, 1, 'spec', 'replicas');
      const updated = numberAt(object, 0, 'status', 'updatedReplicas');
      const all = numberAt(object, 0, 'status', 'replicas');
      const available = numberAt(object, 0, 'status', 'availableReplicas');
      const waiting = (text: string): Progress => ({
        message: `Waiting for deployment ${JSON.stringify(name)} rollout to finish: ${text}...\n`,
        isDone: false,
      });
      if (updated < wanted) return waiting(`${updated} out of ${wanted} new replicas have been updated`);
      if (all > updated) return waiting(`${all - updated} old replicas are pending termination`);
      if (available < updated) return waiting(`${available} of ${updated} updated replicas are available`);
      return { message: `deployment ${JSON.stringify(name)} successfully rolled out\n`, isDone: true };
    }
    case 'DaemonSet': {
      if (textAt(object, 'spec', 'updateStrategy', 'type') === 'OnDelete')
        throw new ClientError('rollout status is only available for RollingUpdate strategy type');
      if (generation > observed)
        return { message: 'Waiting for daemon set spec update to be observed...\n', isDone: false };
      const wanted = numberAt(object, 0, 'status', 'desiredNumberScheduled');
      const updated = numberAt(object, 0, 'status', 'updatedNumberScheduled');
      const available = numberAt(object, 0, 'status', 'numberAvailable');
      const waiting = (text: string): Progress => ({
        message: `Waiting for daemon set ${JSON.stringify(name)} rollout to finish: ${text}...\n`,
        isDone: false,
      });
      if (updated < wanted) return waiting(`${updated} out of ${wanted} new pods have been updated`);
      if (available < wanted) return waiting(`${available} of ${wanted} updated pods are available`);
      return { message: `daemon set ${JSON.stringify(name)} successfully rolled out\n`, isDone: true };
    }
    case 'StatefulSet':
      return statefulSetProgress(object, observed, generation);
    default:
      throw new ClientError(`no status viewer has been implemented for ${object.kind ?? ''}`);
  }
}

function statefulSetProgress(object: AnyObject, observed: number, generation: number): Progress {
  if (textAt(object, 'spec', 'updateStrategy', 'type') === 'OnDelete')
    throw new ClientError('rollout status is only available for RollingUpdate strategy type');
  if (observed === 0 || generation > observed)
    return { message: 'Waiting for statefulset spec update to be observed...\n', isDone: false };
  const replicas = numberAt(object, 1, 'spec', 'replicas');
  const ready = numberAt(object, 0, 'status', 'readyReplicas');
  const updated = numberAt(object, 0, 'status', 'updatedReplicas');
  if (ready < replicas) return { message: `Waiting for ${replicas - ready} pods to be ready...\n`, isDone: false };
  const partition = fieldAt(object, 'spec', 'updateStrategy', 'rollingUpdate', 'partition');
  if (typeof partition === 'number') {
    const wanted = replicas - partition;
    if (updated < wanted)
      return {
        message: `Waiting for partitioned roll out to finish: ${updated} out of ${wanted} new pods have been updated...\n`,
        isDone: false,
      };
    return { message: `partitioned roll out complete: ${updated} new pods have been updated...\n`, isDone: true };
  }
  const current = numberAt(object, 0, 'status', 'currentReplicas');
  const revision = textAt(object, 'status', 'updateRevision');
  if (revision !== textAt(object, 'status', 'currentRevision'))
    return {
      message: `waiting for statefulset rolling update to complete ${updated} pods at revision ${revision}...\n`,
      isDone: false,
    };
  return {
    message: `statefulset rolling update complete ${current} pods at revision ${textAt(object, 'status', 'currentRevision')}...\n`,
    isDone: true,
  };
}

export const runStatus = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, io, system, signal } = context;
    const timeout = flags.text('timeout');
    const deadline =
      timeout === '' || /^0s?$/.test(timeout)
        ? Number.POSITIVE_INFINITY
        : system.monotonicMs() + parseGoDuration(timeout);
    for (const target of await workloads(session)) {
      for (let last = ''; ; ) {
        const { message, isDone } = rolloutProgress(await currentObject(session, target));
        if (message !== last) io.out(message);
        last = message;
        if (isDone || flags.text('watch') === 'false') break;
        if (system.monotonicMs() > deadline) throw new ClientError('timed out waiting for the condition');
        await system.sleep(POLL_MS, signal);
      }
    }
    return 0;
  });

interface Revision {
  readonly number: number;
  readonly object: AnyObject;
  readonly template: unknown;
  readonly cause: string;
}

/** Revisions of a workload, oldest first. */
async function revisionsOf(session: Session, target: Target, object: AnyObject): Promise<Revision[]> {
  const index = await session.resources();
  const isOwned = (each: AnyObject): boolean =>
    (each.metadata?.ownerReferences ?? []).some(
      ({ uid, controller }) => controller === true && uid === object.metadata?.uid,
    );
  const labelSelector = podSelectorOf(object);
  if (object.kind === 'Deployment') {
    const sets = await session.list(index.get('replicasets.apps'), target.namespace, { labelSelector });
    return sets
      .filter(isOwned)
      .map((set) => ({
        number: Number(set.metadata?.annotations?.[REVISION] ?? 0),
        object: set,
        template: fieldAt(set, 'spec', 'template'),
        cause: set.metadata?.annotations?.[CHANGE_CAUSE] ?? '<none>',
      }))
      .sort((left, right) => left.number - right.number);
  }
  if (object.kind !== 'DaemonSet' && object.kind !== 'StatefulSet')
    throw new ClientError(`no history viewer has been implemented for ${JSON.stringify(object.kind ?? '')}`);
  const revisions = await session.list(index.get('controllerrevisions.apps'), target.namespace, { labelSelector });
  return revisions
    .filter(isOwned)
    .map((revision) => ({
      number: numberAt(revision, 0, 'revision'),
      object: revision,
      template: fieldAt(revision, 'data', 'spec', 'template'),
      cause: revision.metadata?.annotations?.[CHANGE_CAUSE] ?? '<none>',
    }))
    .sort((left, right) => left.number - right.number);
}

export const runHistory = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, io } = context;
    for (const target of await workloads(session)) {
      const object = await currentObject(session, target);
      const revisions = await revisionsOf(session, target, object);
      const wanted = flags.int('revision');
      io.out(`${printedKind(target.resource)}/${target.name} ${wanted === 0 ? '' : `with revision #${wanted}`}\n`);
      if (revisions.length === 0) {
        io.out('No rollout history found.\n');
        continue;
      }
      if (wanted === 0) {
        io.out(
          `${layout([['REVISION', 'CHANGE-CAUSE'], ...revisions.map(({ number, cause }) => [String(number), cause])])
            .replace(/(REVISION) +/, '$1  ')
            .replaceAll(/^(\d+) +/gm, (_, digits: string) => digits.padEnd(10))}\n`,
        );
        continue;
      }
      const found = revisions.find(({ number }) => number === wanted);
      if (found === undefined) throw new ClientError(`unable to find the specified revision`);
      io.out(`${describePodTemplate(found.template, 'Pod Template:')}\n`);
    }
    return 0;
  });

export const runUndo = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, io } = context;
    const wanted = flags.int('to-revision');
    for (const target of await workloads(session)) {
      const object = await currentObject(session, target);
      if (object.metadata?.annotations?.[LAST_APPLIED] !== undefined)
        io.err(
          `Warning: resource ${target.resource.name}/${target.name} was previously managed with 'kubectl apply'. Rolling back will not update the ${LAST_APPLIED} annotation, which may cause unexpected behavior on future 'kubectl apply' operations. Consider using 'kubectl apply' with your previous configuration file instead.\n`,
        );
      if (fieldAt(object, 'spec', 'paused') === true)
        throw new ClientError(
          `you cannot rollback a paused deployment; resume it first with 'kubectl rollout resume' and try again`,
        );
      const revisions = await revisionsOf(session, target, object);
      const chosen = wanted === 0 ? revisions.at(-2) : revisions.find(({ number }) => number === wanted);
      if (chosen === undefined)
        throw new ClientError(
          wanted === 0
            ? `no rollout history found for ${target.resource.kind.toLowerCase()} "${target.name}"`
            : `unable to find specified revision ${wanted} in history`,
        );
      const template = withoutHash(chosen.template);
      if (JSON.stringify(template) === JSON.stringify(fieldAt(object, 'spec', 'template'))) {
        await printOutcome(
          context,
          object,
          `skipped rollback (current template already matches revision ${chosen.number})`,
        );
        continue;
      }
      if (dryRunOf(flags) === 'client') {
        await printOutcome(context, object, 'rolled back');
        continue;
      }
      const after = await session.send('PATCH', pathOfTarget(target), {
        query: writeQuery(flags, 'kubectl-rollout'),
        body: [
          { op: 'replace', path: '/spec/template', value: template },
          ...(chosen.object.metadata?.annotations?.[CHANGE_CAUSE] === undefined
            ? []
            : [{ op: 'add', path: `/metadata/annotations/${CHANGE_CAUSE.replace('/', '~1')}`, value: chosen.cause }]),
        ],
        contentType: 'application/json-patch+json',
      });
      await printOutcome(context, after, 'rolled back');
    }
    return 0;
  });

/** The template without the label that the deployment controller adds. */
function withoutHash(template: unknown): unknown {
  const copy = structuredClone(template) as { metadata?: { labels?: Record<string, string> } };
  delete copy.metadata?.labels?.['pod-template-hash'];
  return copy;
}

interface Change {
  readonly outcome: string;
  /** Name of the change in errors. */
  readonly gerund: string;
  readonly kinds: ReadonlySet<string>;
  /** Error for an object that the change cannot be applied to; undefined if it can. */
  readonly refusal: (isPaused: boolean) => string | undefined;
  readonly patch: (context: VerbContext) => object;
}

const PAUSABLE: ReadonlySet<string> = new Set(['Deployment', 'DeploymentConfig', 'MachineConfigPool']);

export const runRestart = (context: VerbContext): Promise<number> =>
  eachWorkload(context, {
    outcome: 'restarted',
    gerund: 'restarting',
    kinds: new Set(['Deployment', 'DaemonSet', 'StatefulSet']),
    refusal: (isPaused) => (isPaused ? "can't restart paused deployment (run rollout resume first)" : undefined),
    patch: ({ system }) => ({
      spec: { template: { metadata: { annotations: { [RESTARTED_AT]: timestamp(system.now()) } } } },
    }),
  });

export const runPause = (context: VerbContext): Promise<number> =>
  eachWorkload(context, {
    outcome: 'paused',
    gerund: 'pausing',
    kinds: PAUSABLE,
    refusal: (isPaused) => (isPaused ? 'is already paused' : undefined),
    patch: () => ({ spec: { paused: true } }),
  });

export const runResume = (context: VerbContext): Promise<number> =>
  eachWorkload(context, {
    outcome: 'resumed',
    gerund: 'resuming',
    kinds: PAUSABLE,
    refusal: (isPaused) => (isPaused ? undefined : 'is not paused'),
    patch: () => ({ spec: { paused: null } }),
  });

function eachWorkload(context: VerbContext, { outcome, gerund, kinds, refusal, patch }: Change): Promise<number> {
  return withSession(context, async (session) => {
    const { flags, io } = context;
    let failed = false;
    for (const target of await workloads(session)) {
      const before = await currentObject(session, target);
      const kind = printedKind(target.resource);
      const reason = kinds.has(target.resource.kind)
        ? refusal(fieldAt(before, 'spec', 'paused') === true)
        : `${gerund} is not supported`;
      if (reason !== undefined) {
        failed = true;
        const { name, group } = target.resource;
        io.err(`error: ${group === '' ? name : `${name}.${group}`} "${target.name}" ${reason}\n`);
        continue;
      }
      if (dryRunOf(flags) === 'client') {
        io.out(`${kind}/${target.name} ${outcome}${dryRunSuffix(flags)}\n`);
        continue;
      }
      const after = await session.send('PATCH', pathOfTarget(target), {
        query: writeQuery(flags, 'kubectl-rollout'),
        body: patch(context),
        contentType:
          target.resource.group === 'apps' ? 'application/strategic-merge-patch+json' : 'application/merge-patch+json',
      });
      await printOutcome(context, after, outcome);
    }
    return failed ? 1 : 0;
  });
}

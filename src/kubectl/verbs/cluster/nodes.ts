/** `cordon`, `uncordon`, `drain` and `taint`. Source: k8s.io/kubectl/pkg/drain. */
import { isApiError } from '../../../api/meta/status.ts';
import { printable } from '../../../base/text/printable.ts';
import { parseGoDuration } from '../../core/durations.ts';
import { ClientError } from '../../core/errors.ts';
import { type AnyObject, fieldAt, listAt, textAt } from '../../core/objects.ts';
import { pathOf } from '../../core/resources.ts';
import type { VerbContext } from '../../port.ts';
import { dryRunOf, dryRunSuffix, printOutcome, writeQuery } from '../../printing.ts';
import { errorLine, withSession } from '../../run.ts';
import type { Session } from '../../session.ts';
import { currentObject, pathOfTarget, type Target, targetsOf } from '../../targets.ts';

const MIRROR = 'kubernetes.io/config.mirror';
const POLL_MS = 500;
const EVICTION_RETRY_MS = 5_000;

const nodeTargets = async (session: Session, verb: string): Promise<Target[]> => {
  const { args, flags } = session.context;
  if (args.length === 0 && flags.text('selector') === '')
    throw new ClientError(`USAGE: ${verb} NODE [flags]`, { usage: true });
  return targetsOf(session, ['nodes', ...args.map((each) => each.replace(/^(?:node|nodes|no)\//, ''))]);
};

export const runCordon = (context: VerbContext): Promise<number> =>
  withSession(context, (session) => cordonAll(session, true));
export const runUncordon = (context: VerbContext): Promise<number> =>
  withSession(context, (session) => cordonAll(session, false));

async function cordonAll(session: Session, unschedulable: boolean): Promise<number> {
  const verb = unschedulable ? 'cordon' : 'uncordon';
  for (const target of await nodeTargets(session, verb)) await cordon(session, target, unschedulable);
  return 0;
}

async function cordon(session: Session, target: Target, unschedulable: boolean): Promise<void> {
  const { flags, io } = session.context;
  const node = await currentObject(session, target);
  const verb = unschedulable ? 'cordoned' : 'uncordoned';
  if ((fieldAt(node, 'spec', 'unschedulable') === true) === unschedulable) {
    io.out(`node/${target.name} already ${verb}${dryRunSuffix(flags)}\n`);
    return;
  }
  if (dryRunOf(flags) !== 'client')
    await session.send('PATCH', pathOfTarget(target), {
      query: writeQuery(flags, unschedulable ? 'kubectl-cordon' : 'kubectl-uncordon'),
      body: { spec: { unschedulable: unschedulable ? true : null } },
      contentType: 'application/strategic-merge-patch+json',
    });
  io.out(`node/${target.name} ${verb}${dryRunSuffix(flags)}\n`);
}

export const runDrain = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { io } = context;
    const targets = await nodeTargets(session, 'drain');
    for (const target of targets) await cordon(session, target, true);
    for (const target of targets) {
      try {
        await drain(session, target);
      } catch (error) {
        io.err(
          `error: unable to drain node "${target.name}" due to error: ${error instanceof Error ? error.message : String(error)}, continuing command...\n`,
        );
        io.err(
          `There are pending nodes to be drained:\n ${target.name}\n${errorLine(error).replace(/^error: /, '')}\n`,
        );
        return 1;
      }
      io.out(`node/${target.name} drained${dryRunSuffix(context.flags)}\n`);
    }
    return 0;
  });

async function drain(session: Session, target: Target): Promise<void> {
  const { flags, io } = session.context;
  const pods = await session.resource('pods');
  const all = await session.list(pods, undefined, {
    fieldSelector: `spec.nodeName=${target.name}`,
    labelSelector: flags.text('pod-selector'),
  });
  const evicted: AnyObject[] = [];
  const refused = new Map<string, string[]>();
  const warned = new Map<string, string[]>();
  const note = (map: Map<string, string[]>, why: string, pod: AnyObject): void =>
    void map.set(why, [...(map.get(why) ?? []), keyOf(pod)]);
  for (const pod of all) {
    const phase = textAt(pod, 'status', 'phase');
    const isFinished = phase === 'Succeeded' || phase === 'Failed';
    const owner = (pod.metadata?.ownerReferences ?? []).find(({ controller }) => controller === true);
    if (pod.metadata?.annotations?.[MIRROR] !== undefined) continue;
    if (owner?.kind === 'DaemonSet' && !isFinished) {
      if (flags.bool('ignore-daemonsets')) note(warned, 'ignoring DaemonSet-managed Pods', pod);
      else note(refused, 'cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore)', pod);
      continue;
    }
    if (
      listAt(pod, 'spec', 'volumes').some((volume) => volume['emptyDir'] !== undefined) &&
      !isFinished &&
      !flags.bool('delete-emptydir-data')
    ) {
      note(refused, 'cannot delete Pods with local storage (use --delete-emptydir-data to override)', pod);
      continue;
    }
    if (owner === undefined && !isFinished) {
      if (!flags.bool('force')) {
        note(refused, 'cannot delete Pods that declare no controller (use --force to override)', pod);
        continue;
      }
      note(warned, 'deleting Pods that declare no controller', pod);
    }
    evicted.push(pod);
  }
  if (refused.size > 0)
    throw new ClientError(
      `[${[...refused].map(([why, names]) => `${why}: ${names.join(', ')}`).join(', ')}]`.replace(
        /^\[(.*)\]$/s,
        refused.size === 1 ? '$1' : '[$1]',
      ),
    );
  for (const [why, names] of warned) io.err(`Warning: ${why}: ${names.join(', ')}\n`);
  const timeout = flags.text('timeout');
  const deadline =
    timeout === '' || /^0s?$/.test(timeout)
      ? Number.POSITIVE_INFINITY
      : session.context.system.monotonicMs() + parseGoDuration(timeout);
  if (dryRunOf(flags) !== 'none') {
    for (const pod of evicted) io.out(`evicting pod ${keyOf(pod)}${dryRunSuffix(flags)}\n`);
    return;
  }
  const done = flags.bool('disable-eviction') ? 'deleted' : 'evicted';
  await Promise.all(
    evicted.map(async (pod) => {
      await evict(session, pod, deadline);
      io.out(printable(`pod/${pod.metadata?.name ?? ''} ${done}\n`));
    }),
  );
}

const keyOf = (pod: AnyObject): string => `${pod.metadata?.namespace ?? ''}/${pod.metadata?.name ?? ''}`;

async function evict(session: Session, pod: AnyObject, deadline: number): Promise<void> {
  const { flags, io, system, signal } = session.context;
  const pods = await session.resource('pods');
  const { name = '', namespace, uid } = pod.metadata ?? {};
  const path = pathOf(pods, namespace, name);
  const grace =
    flags.has('grace-period') && flags.int('grace-period') >= 0
      ? { gracePeriodSeconds: flags.int('grace-period') }
      : {};
  io.out(`evicting pod ${keyOf(pod)}\n`);
  for (;;) {
    try {
      if (flags.bool('disable-eviction'))
        await session.send('DELETE', path, { body: { apiVersion: 'v1', kind: 'DeleteOptions', ...grace } });
      else
        await session.send('POST', `${path}/eviction`, {
          body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace }, deleteOptions: grace },
        });
      break;
    } catch (error) {
      if (isApiError(error, 'NotFound')) return;
      if (!isApiError(error, 'TooManyRequests'))
        throw new ClientError(`error when evicting pods/"${name}" -n "${namespace}": ${(error as Error).message}`);
      io.err(
        `error when evicting pods/"${name}" -n "${namespace}" (will retry after 5s): ${(error as Error).message}\n`,
      );
      if (system.monotonicMs() + EVICTION_RETRY_MS > deadline)
        throw new ClientError(
          `error when evicting pods/"${name}" -n "${namespace}": global timeout reached: ${flags.text('timeout')}`,
        );
      await system.sleep(EVICTION_RETRY_MS, signal);
    }
  }
  for (;;) {
    try {
      const current = await session.get(path);
      if (current.metadata?.uid !== uid) return;
    } catch (error) {
      if (isApiError(error, 'NotFound')) return;
      throw error;
    }
    if (system.monotonicMs() > deadline)
      throw new ClientError(
        `error when waiting for pod "${name}" in namespace "${namespace}" to terminate: global timeout reached: ${flags.text('timeout')}`,
      );
    await system.sleep(POLL_MS, signal);
  }
}

interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
  readonly timeAdded?: string;
}

const EFFECTS: ReadonlySet<string> = new Set(['NoSchedule', 'PreferNoSchedule', 'NoExecute']);

export const runTaint = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, args } = context;
    const specs = args.filter((each) => /[=:]|-$/.test(each));
    const named = args.filter((each) => !specs.includes(each));
    if (specs.length === 0) throw new ClientError('at least one taint update is required');
    const { add, remove } = taintsOf(specs);
    for (const target of await targetsOf(session, named)) {
      const node = await currentObject(session, target);
      const before = (fieldAt(node, 'spec', 'taints') ?? []) as Taint[];
      const [existing] = add.filter((taint) =>
        before.some((each) => each.key === taint.key && each.effect === taint.effect),
      );
      if (existing !== undefined && !flags.bool('overwrite'))
        throw new ClientError(
          `node ${target.name} already has ${existing.key} taint(s) with same effect(s) and --overwrite is false`,
        );
      for (const { key, effect } of remove)
        if (!before.some((each) => each.key === key && (effect === '' || each.effect === effect)))
          throw new ClientError(`taint "${key}${effect === '' ? '' : `:${effect}`}" not found`);
      const kept = before.filter(
        (each) =>
          !remove.some(({ key, effect }) => key === each.key && (effect === '' || effect === each.effect)) &&
          !add.some(({ key, effect }) => key === each.key && effect === each.effect),
      );
      const isModified = flags.bool('overwrite') || (add.length > 0 && remove.length > 0);
      const outcome = isModified ? 'modified' : add.length === 0 ? 'untainted' : 'tainted';
      if (dryRunOf(flags) === 'client') {
        await printOutcome(context, node, outcome);
        continue;
      }
      const after = await session.send('PATCH', pathOfTarget(target), {
        query: writeQuery(flags, 'kubectl-taint'),
        body: { metadata: { resourceVersion: node.metadata?.resourceVersion }, spec: { taints: [...kept, ...add] } },
        contentType: 'application/merge-patch+json',
      });
      await printOutcome(context, after, outcome);
    }
    return 0;
  });

function taintsOf(specs: readonly string[]): {
  readonly add: readonly Taint[];
  readonly remove: readonly { readonly key: string; readonly effect: string }[];
} {
  const add: Taint[] = [];
  const remove: { key: string; effect: string }[] = [];
  for (const spec of specs) {
    const isRemoval = spec.endsWith('-');
    const [, key = '', value, effect = ''] =
      /^([^=:]+)(?:=([^:]*))?(?::(.*))?$/.exec(isRemoval ? spec.slice(0, -1) : spec) ?? [];
    if (key === '' || (!isRemoval && effect === '')) throw new ClientError(`unknown taint spec: ${spec}`);
    if (effect !== '' && !EFFECTS.has(effect))
      throw new ClientError(`invalid taint effect: ${effect}, unsupported taint effect`);
    if (isRemoval) remove.push({ key, effect });
    else add.push({ key, effect, ...(value === undefined ? {} : { value }) });
  }
  return { add, remove };
}

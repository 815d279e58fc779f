/**
 * The life of a machine: it claims a host, has it installed, is linked with its Node; when it is deleted, the Node is
 * drained, the host wiped and released. One step at a time; the next one follows from what is observed then. Source of
 * phases, conditions and hooks: openshift/machine-api-operator pkg/controller/machine of release 4.10.
 */
import type { Node, Pod } from 'kubernetes-types/core/v1';
import {
  type BareMetalHost,
  EXCLUDE_DRAIN_ANNOTATION,
  type LifecycleHook,
  type Machine,
  type MachinePhase,
  type MachineStatus,
} from '../../../api/machines/types.ts';
import { timestamp } from '../context.ts';
import { semanticEqual } from '../equality.ts';
import { isFalse, isTrue, type Observed, withConditions } from './conditions.ts';
import { isReady, podsToDrain } from './drain.ts';
import { hostToClaim, isOffered, isSilent, reportsBlank, whyNone } from './host.ts';
import { quorumRefusal, type StoreMember } from './quorum.ts';

export interface MachineSnapshot {
  readonly machine: Machine;
  /** Hosts of the namespace. */
  readonly hosts: readonly BareMetalHost[];
  /** The host whose consumer the machine is. */
  readonly host: BareMetalHost | undefined;
  /** The Node of the host. */
  readonly node: Node | undefined;
  /** Of that Node, when the machine is being deleted. */
  readonly pods: readonly Pod[];
  /** Of the store, when a master is being deleted; 'unknown': the store has not answered. */
  readonly members: readonly StoreMember[] | 'unknown' | undefined;
  /** What the last attempt of a step over SSH ended with. */
  readonly failure: StepFailure | undefined;
}

export interface StepFailure {
  readonly attempts: number;
  readonly message: string;
  /** The host is not reached again before. */
  readonly retryAtMs: number;
}

export type MachineStep =
  | { readonly do: 'claim'; readonly host: BareMetalHost }
  /** Gives the host what it joins with, or installs it over SSH. */
  | { readonly do: 'provision'; readonly host: BareMetalHost }
  /** Labels, taints and the identity of the machine, on the Node. */
  | { readonly do: 'link'; readonly node: Node }
  | { readonly do: 'cordon'; readonly node: Node }
  | { readonly do: 'evict'; readonly pods: readonly Pod[] }
  | { readonly do: 'wipe'; readonly host: BareMetalHost }
  /** The host does not answer: its member of the store is removed without it. */
  | { readonly do: 'removeMember'; readonly name: string }
  | { readonly do: 'deleteNode'; readonly node: Node }
  | { readonly do: 'release'; readonly host: BareMetalHost }
  | { readonly do: 'finalize' };

export interface MachinePlan {
  readonly status: MachineStatus;
  readonly step: MachineStep | undefined;
  /** When to look again although nothing has changed. */
  readonly againMs: number | undefined;
}

/** Attempts to install over SSH before the machine has failed. */
export const MOST_ATTEMPTS = 5;
const POLL_MS = 5_000;
/** As long a host that was wiped has time to report. */
const SLOW_POLL_MS = 30_000;

export function planMachine(snapshot: MachineSnapshot, nowMs: number): MachinePlan {
  const outcome =
    snapshot.machine.metadata?.deletionTimestamp === undefined ? planLife(snapshot, nowMs) : planEnd(snapshot, nowMs);
  return { status: statusOf(snapshot, outcome, nowMs), step: outcome.step, againMs: outcome.againMs };
}

interface Outcome {
  readonly phase: MachinePhase;
  readonly conditions: readonly Observed[];
  readonly error?: { readonly reason: string; readonly message: string };
  readonly step?: MachineStep | undefined;
  readonly againMs?: number | undefined;
}

const EXISTS = isTrue('InstanceExists');
/** Shown once an installation over SSH has failed. */
const CREATED = isTrue('MachineCreation');
const DRAINABLE = isTrue('Drainable');
const TERMINABLE = isTrue('Terminable');

function planLife({ machine, hosts, host, node, failure }: MachineSnapshot, nowMs: number): Outcome {
  const holds = hookConditions(machine);
  const { errorReason, errorMessage, phase } = machine.status ?? {};
  // As upstream, a failed machine stays one; it is deleted and replaced.
  if (phase === 'Failed') {
    const error = { reason: errorReason ?? 'Unknown', message: errorMessage ?? '' };
    return { phase: 'Failed', conditions: holds, error };
  }
  if (host === undefined) {
    if ((machine.spec?.providerID ?? '') !== '') {
      const message = "Can't find created instance.";
      return {
        phase: 'Failed',
        conditions: [...holds, isFalse('InstanceExists', 'InstanceMissing', message)],
        error: { reason: 'UpdateError', message },
      };
    }
    const provider = machine.spec?.providerSpec?.value;
    const free = hostToClaim(hosts, provider, nowMs);
    const missing = isFalse(
      'InstanceExists',
      'NoHostAvailable',
      `No host to claim of ${whyNone(hosts, provider, nowMs)}`,
    );
    const conditions = [...holds, missing];
    if (free === undefined) return { phase: 'Provisioning', conditions, againMs: SLOW_POLL_MS };
    return { phase: 'Provisioning', conditions, step: { do: 'claim', host: free } };
  }
  const wasRefused = machine.status?.conditions?.some(({ type }) => type === CREATED.type) === true;
  const created = wasRefused ? [CREATED] : [];
  const conditions = [...holds, EXISTS];
  if (node === undefined) {
    if (failure !== undefined && failure.attempts >= MOST_ATTEMPTS)
      return { phase: 'Failed', conditions, error: { reason: 'CreateError', message: failure.message } };
    const joins = isOffered(host) ? !reportsBlank(host) : phase === 'Provisioned';
    if (joins) return { phase: 'Provisioned', conditions: [...conditions, ...created], againMs: POLL_MS };
    if (failure !== undefined) conditions.push(isFalse(CREATED.type, 'MachineCreationFailed', failure.message));
    if (failure !== undefined && failure.retryAtMs > nowMs)
      return { phase: 'Provisioning', conditions, againMs: failure.retryAtMs - nowMs };
    return { phase: 'Provisioning', conditions, step: { do: 'provision', host }, againMs: POLL_MS };
  }
  return { phase: 'Running', conditions: [...conditions, ...created], step: { do: 'link', node } };
}

function planEnd(snapshot: MachineSnapshot, nowMs: number): Outcome {
  const { machine, host, node, members } = snapshot;
  const { preDrain = [], preTerminate = [] } = machine.spec?.lifecycleHooks ?? {};
  const exists = host === undefined ? [] : [EXISTS];
  const drained =
    machine.status?.conditions?.some(({ type, status }) => type === 'Drained' && status === 'True') === true;
  const isWiping = host?.status?.provisioning?.state === 'deprovisioning';
  if (host === undefined && node === undefined) return { phase: 'Deleting', conditions: [], step: { do: 'finalize' } };
  if (!drained && preDrain.length > 0)
    return {
      phase: 'Deleting',
      conditions: [...exists, held('Drainable', preDrain, 'drain'), ...terminable(preTerminate)],
    };
  const name = host?.metadata?.name ?? node?.metadata?.name ?? '';
  const refusal = isWiping ? undefined : storeRefusal(members, name);
  if (refusal !== undefined) {
    const kept = isFalse(
      drained ? 'Terminable' : 'Drainable',
      'WouldLoseQuorum',
      `Deletion is refused: ${refusal}`,
      'Error',
    );
    return { phase: 'Deleting', conditions: [...exists, kept], againMs: POLL_MS };
  }
  if (!drained) {
    const left = drainStep(snapshot, nowMs);
    if (left !== undefined)
      return { ...left, conditions: [...exists, DRAINABLE, ...left.conditions, ...terminable(preTerminate)] };
  }
  const before = [...exists, DRAINABLE, { ...isTrue('Drained'), message: 'Drain finished successfully' }];
  if (preTerminate.length > 0) return { phase: 'Deleting', conditions: [...before, ...terminable(preTerminate)] };
  return { phase: 'Deleting', conditions: [...before, TERMINABLE], ...endStep(snapshot, nowMs) };
}

/** Undefined: nothing is left to drain. */
function drainStep({ machine, node, pods }: MachineSnapshot, nowMs: number): Outcome | undefined {
  if (node === undefined || machine.metadata?.annotations?.[EXCLUDE_DRAIN_ANNOTATION] !== undefined) return undefined;
  const phase = 'Deleting';
  if (node.spec?.unschedulable !== true)
    return { phase, conditions: [], step: { do: 'cordon', node }, againMs: POLL_MS };
  const left = podsToDrain(pods, isReady(node), nowMs);
  if (left.length === 0) return undefined;
  const names = left.slice(0, 5).map(({ metadata }) => `${metadata?.namespace}/${metadata?.name}`);
  const more = left.length > names.length ? `, ${left.length - names.length} more` : '';
  const conditions = [isFalse('Drained', 'DrainError', `Pods remain: ${names.join(', ')}${more}`)];
  return { phase, conditions, step: { do: 'evict', pods: left }, againMs: POLL_MS };
}

/** The host is wiped first, since its kubelet would register the Node again. */
function endStep({ host, node, members, failure }: MachineSnapshot, nowMs: number): Pick<Outcome, 'step' | 'againMs'> {
  const name = host?.metadata?.name ?? node?.metadata?.name ?? '';
  const isMember = Array.isArray(members) && members.some((each) => each.name === name);
  if (host !== undefined) {
    const ordered = host.status?.provisioning?.state === 'deprovisioning';
    const isEarly = failure !== undefined && failure.retryAtMs > nowMs && failure.attempts < MOST_ATTEMPTS;
    if (isEarly) return { againMs: failure.retryAtMs - nowMs };
    const gaveUp = failure !== undefined && failure.attempts >= MOST_ATTEMPTS && !isOffered(host);
    if (!ordered && !gaveUp) return { step: { do: 'wipe', host }, againMs: POLL_MS };
    const answers = isOffered(host)
      ? !isSilent(host, nowMs)
      : failure === undefined || failure.attempts < MOST_ATTEMPTS;
    const isWiped = isOffered(host) ? reportsBlank(host) : failure === undefined;
    if (!isWiped && answers)
      return isOffered(host) ? { againMs: POLL_MS } : { step: { do: 'wipe', host }, againMs: POLL_MS };
    // It is wiped by its own next report; see refusalToClaim.
  }
  if (isMember) return { step: { do: 'removeMember', name }, againMs: POLL_MS };
  if (node !== undefined) return { step: { do: 'deleteNode', node }, againMs: POLL_MS };
  return host === undefined ? { step: { do: 'finalize' } } : { step: { do: 'release', host }, againMs: POLL_MS };
}

function storeRefusal(members: MachineSnapshot['members'], name: string): string | undefined {
  if (members === undefined) return undefined;
  return members === 'unknown' ? 'the store does not answer' : quorumRefusal(members, name);
}

function held(type: string, hooks: readonly LifecycleHook[], what: string): Observed {
  const named = hooks.map(({ name, owner }) => `{Name:${name} Owner:${owner}}`).join(' ');
  return isFalse(
    type,
    'HookPresent',
    `${what === 'drain' ? 'Drain' : 'Terminate'} operation currently blocked by: [${named}]`,
  );
}

const terminable = (hooks: readonly LifecycleHook[]): Observed[] =>
  hooks.length === 0 ? [TERMINABLE] : [held('Terminable', hooks, 'terminate')];

function hookConditions(machine: Machine): Observed[] {
  const { preDrain = [], preTerminate = [] } = machine.spec?.lifecycleHooks ?? {};
  return [preDrain.length === 0 ? DRAINABLE : held('Drainable', preDrain, 'drain'), ...terminable(preTerminate)];
}

function statusOf({ machine, host, node }: MachineSnapshot, outcome: Outcome, nowMs: number): MachineStatus {
  const before = machine.status ?? {};
  const { errorReason: _r, errorMessage: _m, nodeRef: _n, ...kept } = before;
  const nodeRef =
    node === undefined
      ? before.nodeRef
      : { kind: 'Node', name: node.metadata?.name ?? '', uid: node.metadata?.uid ?? '' };
  const addresses = node?.status?.addresses ?? before.addresses;
  const next: MachineStatus = {
    ...kept,
    ...(nodeRef === undefined ? {} : { nodeRef }),
    ...(addresses === undefined ? {} : { addresses }),
    ...(host === undefined ? {} : { providerStatus: { host: host.metadata?.name ?? '' } }),
    ...(outcome.error === undefined ? {} : { errorReason: outcome.error.reason, errorMessage: outcome.error.message }),
    phase: outcome.phase,
    conditions: withConditions(before.conditions, outcome.conditions, nowMs),
  };
  if (semanticEqual(next, before)) return before;
  // Of a phase, as upstream: time-outs of health checks count from it.
  return {
    ...next,
    lastUpdated: next.phase === before.phase ? (before.lastUpdated ?? timestamp(nowMs)) : timestamp(nowMs),
  };
}

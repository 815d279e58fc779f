/**
 * Life cycle of a machine. A machine claims a host, installs it, and is linked to the host's Node. When the machine is
 * deleted, the Node is drained, and the host is wiped and released. Each plan contains at most one step; the next step
 * is planned from the state after it. Source of phases, conditions and hooks: openshift/machine-api-operator
 * pkg/controller/machine of release 4.10.
 */

import type { Node, Pod } from '../../../api/generated/core/v1.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import { equalIgnoringEmptyLists } from '../../../controllers/framework/core/equality.ts';
import {
  type BareMetalHost,
  EXCLUDE_DRAIN_ANNOTATION,
  type LifecycleHook,
  type Machine,
  type MachinePhase,
  type MachineStatus,
} from '../kinds/machine-types.ts';
import { hostToClaim, isOffered, isSilent, reportsBlank, whyNone } from './bare-metal-host.ts';
import { isFalse, isTrue, type Observed, withConditions } from './conditions.ts';
import { isReady, podsToDrain } from './drain.ts';
import { quorumRefusal, type StoreMember } from './quorum.ts';

export interface MachineSnapshot {
  readonly machine: Machine;
  /** Hosts in the namespace of the machine. */
  readonly hosts: readonly BareMetalHost[];
  /** Host that the machine has claimed: its consumerRef refers to the machine. */
  readonly host: BareMetalHost | undefined;
  readonly node: Node | undefined;
  /** Pods on the Node. Only set while the machine is being deleted. */
  readonly pods: readonly Pod[];
  /** Members of the store. Only set while a master is being deleted. 'unknown' means that the store did not respond. */
  readonly members: readonly StoreMember[] | 'unknown' | undefined;
  /** Failure of the last attempt of a step over SSH; undefined if it succeeded. */
  readonly failure: StepFailure | undefined;
}

export interface StepFailure {
  readonly attempts: number;
  readonly message: string;
  /** Time before which the step is not tried again. */
  readonly retryAtMs: number;
}

export type MachineStep =
  | { readonly do: 'claim'; readonly host: BareMetalHost }
  /** Provides the host with its sealed join token, or installs the host over SSH. */
  | { readonly do: 'provision'; readonly host: BareMetalHost }
  /** Writes the labels, taints and annotations of the machine to the Node. */
  | { readonly do: 'link'; readonly node: Node }
  | { readonly do: 'cordon'; readonly node: Node }
  | { readonly do: 'evict'; readonly pods: readonly Pod[] }
  | { readonly do: 'wipe'; readonly host: BareMetalHost }
  /** Removes the host's member from the store. */
  | { readonly do: 'removeMember'; readonly name: string }
  | { readonly do: 'deleteNode'; readonly node: Node }
  | { readonly do: 'release'; readonly host: BareMetalHost }
  | { readonly do: 'finalize' };

export interface MachinePlan {
  readonly status: MachineStatus;
  readonly step: MachineStep | undefined;
  /** Milliseconds until the next check if no event occurs; undefined if no check is required. */
  readonly againMs: number | undefined;
}

/** Maximum number of attempts to install a host over SSH. After that, the machine fails. */
export const MOST_ATTEMPTS = 5;
const POLL_MS = 5_000;
/** Interval for checking whether a host has become free. A host that was wiped reports again after about this time. */
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
/** Condition for the installation over SSH. It is only added after an attempt has failed. */
const CREATED = isTrue('MachineCreation');
const DRAINABLE = isTrue('Drainable');
const TERMINABLE = isTrue('Terminable');

function planLife({ machine, hosts, host, node, failure }: MachineSnapshot, nowMs: number): Outcome {
  const holds = hookConditions(machine);
  const { errorReason, errorMessage, phase } = machine.status ?? {};
  // A failed machine never recovers, as in upstream. An administrator or a health check replaces it.
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

/** Next step of draining the Node; undefined if the drain is complete or not required. */
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

/**
 * Next step after the drain. The host is wiped before its Node is deleted, because the kubelet would otherwise register
 * the Node again.
 */
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
    // The host is wiped or does not respond. A host that is not wiped cannot be claimed; see refusalToClaim.
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
  if (equalIgnoringEmptyLists(next, before)) return before;
  // lastUpdated is the time at which the phase last changed, as in upstream. Timeouts of health checks begin at this
  // time.
  return {
    ...next,
    lastUpdated: next.phase === before.phase ? (before.lastUpdated ?? timestamp(nowMs)) : timestamp(nowMs),
  };
}

/**
 * Phases of an operator version: computes the next phase from a snapshot. Source: operator-lifecycle-manager
 * pkg/controller/operators/olm/operator.go (transitionCSVState); reasons of operator-framework/api.
 */
import type { ClusterServiceVersion, ClusterServiceVersionStatus, RequirementStatus } from '../kinds/types.ts';
import type { GroupProblem } from './operator-groups.ts';

export interface Health {
  /** Whether all objects of the install strategy exist as specified. */
  readonly applied: boolean;
  readonly ready: boolean;
  /** Description of what the installation waits for. */
  readonly message: string;
  /** Reason why the install strategy is invalid; undefined if it is valid. */
  readonly invalid?: string;
}

export interface PhaseSnapshot {
  readonly csv: ClusterServiceVersion;
  /** Problem of the operator group, or reason why the group does not support this operator version. */
  readonly problem: GroupProblem | undefined;
  readonly requirements: readonly RequirementStatus[];
  readonly requirementsMet: boolean;
  /** Operator version that replaces this one, if any. */
  readonly successor: ClusterServiceVersion | undefined;
  /** Operator version that this one replaces, if it still exists. */
  readonly predecessor: ClusterServiceVersion | undefined;
  /** Reason why the predecessor must not be replaced now. */
  readonly notUpgradeable: string | undefined;
  /** Message about another operator version that owns the same APIs; undefined if there is none. */
  readonly conflict: string | undefined;
  readonly failForward: boolean;
  readonly health: Health;
  readonly nowMs: number;
}

export interface NextPhase {
  readonly phase: string;
  readonly reason: string;
  readonly message: string;
  /** Whether the install strategy must be applied now. */
  readonly install: boolean;
  /** Whether the operator version must be deleted now. */
  readonly remove: boolean;
}

/** Time after which an installation has failed. It equals upstream's deadline. */
export const INSTALL_TIMEOUT_MS = 5 * 60_000;
const GROUP_REASONS: ReadonlySet<string> = new Set([
  'NoOperatorGroup',
  'TooManyOperatorGroups',
  'UnsupportedOperatorGroup',
]);

const to = (phase: string, reason: string, message: string, doing: Partial<NextPhase> = {}): NextPhase => ({
  phase,
  reason,
  message,
  install: false,
  remove: false,
  ...doing,
});

export function nextPhase(snapshot: PhaseSnapshot): NextPhase {
  const { csv, problem, successor } = snapshot;
  const { phase = '', reason = '' } = csv.status ?? {};
  const stay = (doing: Partial<NextPhase> = {}): NextPhase => to(phase, reason, csv.status?.message ?? '', doing);
  if (phase === 'Deleting') return stay({ remove: true });
  if (phase === 'Replacing') return replacing(snapshot, stay);
  // A working operator version stays installed until its successor works.
  if (successor !== undefined && (phase === 'Succeeded' || (phase === 'Failed' && snapshot.failForward)))
    return to('Replacing', 'BeingReplaced', `being replaced by csv: ${successor.metadata?.name}`);
  if (problem !== undefined) return to('Failed', problem.reason, problem.message);
  switch (phase) {
    case 'Pending':
      return pending(snapshot);
    case 'InstallReady':
      return installReady(snapshot);
    case 'Installing':
      return installing(snapshot, stay);
    case 'Succeeded':
      return succeeded(snapshot, stay);
    case 'Failed':
      return failed(snapshot, stay);
    default:
      return to('Pending', 'RequirementsUnknown', 'requirements not yet checked');
  }
}

function replacing({ successor }: PhaseSnapshot, stay: () => NextPhase): NextPhase {
  // The successor was deleted before it was installed, so this operator version becomes active again.
  if (successor === undefined) return to('Pending', 'RequirementsUnknown', 'requirements not yet checked');
  if (successor.status?.phase !== 'Succeeded') return stay();
  return to(
    'Deleting',
    'Replaced',
    'has been replaced by a newer ClusterServiceVersion that has successfully installed.',
  );
}

function pending({ requirementsMet, notUpgradeable, predecessor, failForward }: PhaseSnapshot): NextPhase {
  if (notUpgradeable !== undefined)
    return to('Pending', 'OperatorConditionNotUpgradeable', `operator is not upgradeable: ${notUpgradeable}`);
  const before = predecessor?.status?.phase;
  // Wait while the predecessor is being installed, because it may use the same deployments.
  if (before !== undefined && before !== 'Replacing' && !(before === 'Failed' && failForward))
    return to(
      'Pending',
      'RequirementsNotMet',
      `waiting for ${predecessor?.metadata?.name} to be replaced: its phase is ${before}`,
    );
  return requirementsMet
    ? to('InstallReady', 'AllRequirementsMet', 'all requirements found, attempting install')
    : to('Pending', 'RequirementsNotMet', "one or more requirements couldn't be found");
}

function installReady({ conflict, health }: PhaseSnapshot): NextPhase {
  if (conflict !== undefined) return to('Failed', 'OwnerConflict', conflict);
  if (health.invalid !== undefined) return to('Failed', 'InvalidStrategy', health.invalid);
  return to('Installing', 'InstallSucceeded', 'waiting for install components to report healthy', { install: true });
}

function installing({ csv, health, nowMs }: PhaseSnapshot, stay: (doing: Partial<NextPhase>) => NextPhase): NextPhase {
  if (health.invalid !== undefined) return to('Failed', 'InstallComponentFailed', health.invalid);
  if (health.applied && health.ready)
    return to('Succeeded', 'InstallSucceeded', 'install strategy completed with no errors');
  const began = Date.parse(csv.status?.lastTransitionTime ?? '');
  if (nowMs - began > INSTALL_TIMEOUT_MS)
    return to('Failed', 'InstallCheckFailed', `install timeout: ${health.message}`);
  if (health.message === '') return stay({ install: true });
  return to('Installing', 'InstallWaiting', `installing: ${health.message}`, { install: true });
}

function succeeded(snapshot: PhaseSnapshot, stay: (doing: Partial<NextPhase>) => NextPhase): NextPhase {
  const { requirementsMet, health } = snapshot;
  if (!requirementsMet) return to('Pending', 'RequirementsNotMet', "one or more requirements couldn't be found");
  if (health.invalid !== undefined) return to('Failed', 'InstallComponentFailed', health.invalid);
  // Objects were changed or deleted, so they are created again. Pods keep running meanwhile.
  if (!health.applied) return to('Pending', 'NeedsReinstall', 'calculated deployment install is bad; reinstalling');
  if (!health.ready) return to('Failed', 'ComponentUnhealthy', `installing: ${health.message}`);
  return stay({});
}

function failed(snapshot: PhaseSnapshot, stay: () => NextPhase): NextPhase {
  const { reason = '' } = snapshot.csv.status ?? {};
  // The problem that made the operator version fail no longer exists.
  if (GROUP_REASONS.has(reason) || reason === 'RequirementsNotMet')
    return to('Pending', 'RequirementsUnknown', 'requirements not yet checked');
  if (reason === 'ComponentUnhealthy' || reason === 'InstallCheckFailed')
    return snapshot.health.ready && snapshot.health.applied
      ? to('Pending', 'NeedsReinstall', 'installing: components are healthy again')
      : stay();
  if (reason === 'OwnerConflict' && snapshot.conflict === undefined)
    return to('Pending', 'RequirementsUnknown', 'requirements not yet checked');
  if ((reason === 'InstallComponentFailed' || reason === 'InvalidStrategy') && snapshot.health.invalid === undefined)
    return to('Pending', 'NeedsReinstall', 'installing: the strategy can be carried out again');
  return stay();
}

const MAX_CONDITIONS = 20;

/** Status after a transition; undefined if it is unchanged. `now` is an RFC 3339 time. */
export function statusAfter(
  { status = {} }: ClusterServiceVersion,
  next: NextPhase,
  requirements: readonly RequirementStatus[],
  now: string,
): ClusterServiceVersionStatus | undefined {
  const { phase, reason, message } = next;
  const sameRequirements = JSON.stringify(status.requirementStatus ?? []) === JSON.stringify(requirements);
  const same = status.phase === phase && status.reason === reason && status.message === message;
  if (same && sameRequirements) return undefined;
  const lastTransitionTime = status.phase === phase ? (status.lastTransitionTime ?? now) : now;
  const condition = { phase, reason, message, lastUpdateTime: now, lastTransitionTime };
  return {
    ...status,
    phase,
    reason,
    message,
    lastUpdateTime: now,
    lastTransitionTime,
    conditions: same ? (status.conditions ?? []) : [...(status.conditions ?? []), condition].slice(-MAX_CONDITIONS),
    ...(requirements.length === 0 && status.requirementStatus === undefined
      ? {}
      : { requirementStatus: [...requirements] }),
  };
}

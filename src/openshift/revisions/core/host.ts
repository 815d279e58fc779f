/**
 * Selects a master's next action for the revisions of one component. The decision is based on the files on the master's
 * disk, so it is possible without an API server. Source: enhancement "static pod fallback".
 */
import { prunable } from './prune.ts';
import type { Failure } from './types.ts';

export interface HostRevision {
  readonly revision: number;
  /** Digest of all input files. */
  readonly digest: string;
  /** Digest of the input files that the component reads only when it starts. */
  readonly restartDigest: string;
  readonly overlay: string;
  readonly reason: string;
  readonly atMs: number;
  readonly outcome: 'trial' | 'good' | 'failed';
  /**
   * Time from the installation until the component was healthy. Undefined if the component did not become healthy, or
   * did not need a restart.
   */
  readonly tookMs?: number;
}

export interface HostState {
  /** The running revision; 0 if there is none yet. */
  readonly current: number;
  readonly revisions: readonly HostRevision[];
  /** Present while `current` has been started but is not known to be healthy. */
  readonly trial?: { readonly sinceMs: number };
  readonly failure?: Failure;
}

export const EMPTY_STATE: HostState = { current: 0, revisions: [] };

export interface HostView {
  /** Monotonic time since the trial began; 0 if there is no trial. */
  readonly trialForMs: number;
  /** Digest of the component's current input files. */
  readonly digest: string;
  readonly restartDigest: string;
  /** Names of the files that differ from those of the newest revision. */
  readonly changed: readonly string[];
  /** Revision that the leader assigned to this host; undefined if there is none, or if no API server responds. */
  readonly target?: {
    readonly revision: number;
    readonly overlay: string;
    readonly reason: string;
    /**
     * Number of failures of the revision on this host when the leader assigned it. If the host has counted more
     * failures since, it no longer installs the revision.
     */
    readonly knownFailures: number;
  };
  /** Time for which no API server has responded; 0 while an API server responds. */
  readonly apiAwayMs: number;
  /** Whether the component is about to start in any case, because the host starts or because of a requested restart. */
  readonly isStarting: boolean;
  readonly health: { readonly state: 'healthy' | 'starting' | 'crashing'; readonly message: string };
}

export type HostAction =
  | { readonly type: 'none' }
  /** Stores the current files as this revision. If `restart` is false, the component needs no restart to use them. */
  | {
      readonly type: 'install';
      readonly revision: number;
      readonly overlay: string;
      readonly reason: string;
      readonly restart: boolean;
    }
  | { readonly type: 'succeed' }
  | { readonly type: 'fallBack'; readonly to: number; readonly message: string };

/**
 * Time within which a new revision must become healthy. This time and the restart of the older revision together stay
 * below the minute within which the component must respond again.
 */
const TRIAL_MS = 40_000;
/** Factor for slow hosts: the trial lasts this many times as long as the slowest start of a successful revision. */
const SLOW_FACTOR = 3;
const LONGEST_TRIAL_MS = 300_000;
/**
 * Outage of the API servers after which the host installs changed files by itself. It exceeds the restart of an API
 * server.
 */
const API_AWAY_MS = 15_000;

const NONE: HostAction = { type: 'none' };

const newestOf = ({ revisions }: HostState): HostRevision | undefined =>
  revisions.reduce<HostRevision | undefined>(
    (newest, each) => (newest === undefined || each.revision > newest.revision ? each : newest),
    undefined,
  );

/** Last revision tried on this host. Its input files are not tried again without a request of the leader. */
export const attemptOf = newestOf;

export function hostStep(state: HostState, view: HostView): HostAction {
  const { target } = view;
  const current = state.revisions.find(({ revision }) => revision === state.current);
  if (current === undefined) return first(state, view);
  const isWanted =
    target !== undefined &&
    target.revision > 0 &&
    target.revision !== state.current &&
    !(state.failure?.revision === target.revision && target.knownFailures < state.failure.count);
  if (target !== undefined && isWanted && target.revision >= (newestOf(state)?.revision ?? 0)) {
    const restart = view.restartDigest !== current.restartDigest || target.overlay !== current.overlay;
    const { revision, overlay, reason } = target;
    return { type: 'install', revision, overlay, reason, restart };
  }
  if (state.trial !== undefined) {
    const action = nextAction(state, view);
    // If no other revision can run, wait for health but try changed files.
    if (action.type !== 'none' || (!view.isStarting && lastGood(state) !== undefined)) return action;
  }
  const newest = newestOf(state) ?? current;
  const mayDecide = view.isStarting || view.apiAwayMs >= API_AWAY_MS;
  // If the newest revision failed, its input files are not installed again.
  if (!mayDecide || view.digest === newest.digest || view.digest === current.digest) return NONE;
  return {
    type: 'install',
    revision: newest.revision + 1,
    overlay: current.overlay,
    reason: `${view.changed.join(', ')} changed`,
    restart: view.restartDigest !== current.restartDigest,
  };
}

/** Action for a host without revisions: the files with which the host starts become its first revision. */
function first(state: HostState, { target }: HostView): HostAction {
  const revision = Math.max(1, target?.revision ?? 0, (newestOf(state)?.revision ?? 0) + 1);
  return { type: 'install', revision, overlay: target?.overlay ?? '', reason: 'initial revision', restart: false };
}

function nextAction(state: HostState, { trialForMs, health }: HostView): HostAction {
  if (health.state === 'healthy') return { type: 'succeed' };
  const isLate = trialForMs >= trialMs(state);
  if (health.state === 'starting' && !isLate) return NONE;
  const good = lastGood(state);
  return good === undefined ? NONE : { type: 'fallBack', to: good.revision, message: health.message };
}

const trialMs = ({ revisions }: HostState): number =>
  Math.min(LONGEST_TRIAL_MS, Math.max(TRIAL_MS, ...revisions.map(({ tookMs = 0 }) => SLOW_FACTOR * tookMs)));

/**
 * Revision to which the host returns: the newest one that was healthy here, otherwise the newest one that has not
 * failed.
 */
function lastGood({ revisions, current }: HostState): HostRevision | undefined {
  const rank = ({ outcome, revision }: HostRevision): number => (outcome === 'good' ? 1e9 : 0) + revision;
  return revisions
    .filter(({ revision, outcome }) => outcome !== 'failed' && revision !== current)
    .sort((left, right) => rank(right) - rank(left))[0];
}

export function installed(state: HostState, revision: HostRevision, isTrial: boolean): HostState {
  const others = state.revisions.filter((each) => each.revision !== revision.revision);
  const { trial: _, ...rest } = state;
  const next = { ...rest, current: revision.revision };
  return isTrial
    ? { ...next, revisions: [...others, { ...revision, outcome: 'trial' }], trial: { sinceMs: revision.atMs } }
    : succeeded({ ...next, revisions: [...others, { ...revision, outcome: 'good' }] }, undefined);
}

/** Records that the current revision is healthy. This clears a failure of this revision or of an older one. */
export function succeeded(state: HostState, tookMs: number | undefined): HostState {
  const { trial: _, failure, ...rest } = state;
  return {
    ...rest,
    ...(failure === undefined || failure.revision <= state.current ? {} : { failure }),
    revisions: state.revisions.map((each) =>
      each.revision === state.current
        ? { ...each, outcome: 'good' as const, ...(tookMs === undefined ? {} : { tookMs }) }
        : each,
    ),
  };
}

/** Records that the current revision failed and `to` runs again. */
export function withFallback(state: HostState, to: number, message: string, nowMs: number): HostState {
  const { trial: _, ...rest } = state;
  const before = state.failure?.revision === state.current ? state.failure : undefined;
  return {
    ...rest,
    current: to,
    revisions: state.revisions.map((each) =>
      each.revision === state.current ? { ...each, outcome: 'failed' as const } : each,
    ),
    failure: {
      revision: state.current,
      atMs: nowMs,
      reason: 'OperandFailedFallback',
      count: (before?.count ?? 0) + 1,
      fallbacks: (before?.fallbacks ?? 0) + 1,
      errors: [message],
    },
  };
}

/** Numbers of the revisions whose files this host may delete. */
export function prunedHere(
  state: HostState,
  limits: { readonly failed: number; readonly succeeded: number },
): number[] {
  const used = new Set([state.current, newestOf(state)?.revision ?? 0, lastGood(state)?.revision ?? 0]);
  return prunable(
    state.revisions.map(({ revision, outcome }) => ({ revision, isGood: outcome === 'good' })),
    used,
    limits,
  );
}

export function withoutRevisions(state: HostState, pruned: readonly number[]): HostState {
  return { ...state, revisions: state.revisions.filter(({ revision }) => !pruned.includes(revision)) };
}

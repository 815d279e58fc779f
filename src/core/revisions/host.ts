/**
 * Revisions of one component on one master: what the host does next with what is on its disk. It needs no API server.
 * Source: enhancement "static pod fallback".
 */
import { prunable } from './prune.ts';
import type { Failure } from './types.ts';

export interface HostRevision {
  readonly revision: number;
  /** Of all input files. */
  readonly digest: string;
  /** Of the input files that the component reads at its start only. */
  readonly restartDigest: string;
  readonly overlay: string;
  readonly reason: string;
  readonly atMs: number;
  readonly outcome: 'trial' | 'good' | 'failed';
  /** From its installation until it was healthy; undefined: it was not, or needed no restart. */
  readonly tookMs?: number;
}

export interface HostState {
  /** The revision that runs; 0: none yet. */
  readonly current: number;
  readonly revisions: readonly HostRevision[];
  /** Present: `current` has been started and is not known to be healthy yet. */
  readonly trial?: { readonly sinceMs: number };
  readonly failure?: Failure;
}

export const EMPTY_STATE: HostState = { current: 0, revisions: [] };

export interface HostView {
  readonly nowMs: number;
  /** The files as they are now. */
  readonly digest: string;
  readonly restartDigest: string;
  /** Names of the files that differ from those of the newest revision. */
  readonly changed: readonly string[];
  /** What the leader wants; undefined: nothing, or no API server answers. */
  readonly target?: {
    readonly revision: number;
    readonly overlay: string;
    readonly reason: string;
    /** Failures of the revision here that the leader knew when it set the target: a later one has ended it. */
    readonly knownFailures: number;
  };
  /** How long no API server has answered; 0: it does. */
  readonly apiAwayMs: number;
  /** The component is about to start anyway: at a start of the host, or on request. */
  readonly isStarting: boolean;
  readonly health: { readonly state: 'healthy' | 'starting' | 'crashing'; readonly message: string };
}

export type HostAction =
  | { readonly type: 'none' }
  /** The files of now become this revision. Without `restart` the component runs them already. */
  | {
      readonly type: 'install';
      readonly revision: number;
      readonly overlay: string;
      readonly reason: string;
      readonly restart: boolean;
    }
  | { readonly type: 'succeed' }
  | { readonly type: 'fallBack'; readonly to: number; readonly message: string };

/** With the restart of the older revision, less than the minute within which the component answers again. */
const TRIAL_MS = 40_000;
/** A slow host gets as many times what its slowest good revision took. */
const SLOW_FACTOR = 3;
const LONGEST_TRIAL_MS = 300_000;
/** An API server restarts in less. */
const API_AWAY_MS = 15_000;

const NONE: HostAction = { type: 'none' };

const newestOf = ({ revisions }: HostState): HostRevision | undefined =>
  revisions.reduce<HostRevision | undefined>(
    (newest, each) => (newest === undefined || each.revision > newest.revision ? each : newest),
    undefined,
  );

/** The last revision tried here; its inputs are not tried again without a request. */
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
    const verdict = judge(state, view, state.trial.sinceMs);
    // Without a good revision to go back to, changed files are the way out.
    if (verdict.type !== 'none' || (!view.isStarting && lastGood(state) !== undefined)) return verdict;
  }
  const newest = newestOf(state) ?? current;
  const mayDecide = view.isStarting || view.apiAwayMs >= API_AWAY_MS;
  // Inputs that failed are not installed again; they are the newest revision then.
  if (!mayDecide || view.digest === newest.digest || view.digest === current.digest) return NONE;
  return {
    type: 'install',
    revision: newest.revision + 1,
    overlay: current.overlay,
    reason: `${view.changed.join(', ')} changed`,
    restart: view.restartDigest !== current.restartDigest,
  };
}

/** The first revision is what the host starts with. */
function first(state: HostState, { target }: HostView): HostAction {
  const revision = Math.max(1, target?.revision ?? 0, (newestOf(state)?.revision ?? 0) + 1);
  return { type: 'install', revision, overlay: target?.overlay ?? '', reason: 'initial revision', restart: false };
}

function judge(state: HostState, { nowMs, health }: HostView, sinceMs: number): HostAction {
  if (health.state === 'healthy') return { type: 'succeed' };
  const isLate = nowMs - sinceMs >= trialMs(state);
  if (health.state === 'starting' && !isLate) return NONE;
  const good = lastGood(state);
  return good === undefined ? NONE : { type: 'fallBack', to: good.revision, message: health.message };
}

const trialMs = ({ revisions }: HostState): number =>
  Math.min(LONGEST_TRIAL_MS, Math.max(TRIAL_MS, ...revisions.map(({ tookMs = 0 }) => SLOW_FACTOR * tookMs)));

/** The newest revision that was healthy here, else the newest that has not failed; not the current one. */
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

/** A failure is forgotten once its revision or a newer one is healthy. */
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

/** The current revision failed, and `to` runs again. */
export function fellBack(state: HostState, to: number, message: string, nowMs: number): HostState {
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

/** Revisions whose files are deleted. */
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

/**
 * Revisions of a control plane component, planned by the leader: when a new revision is created, and which master
 * installs it next. Source: library-go pkg/operator/staticpod/controller/{installer,revision,prune}; enhancement
 * "static pod fallback".
 */
import { decodeJson, fields } from '../../../base/decode.ts';
import { prunable } from './prune.ts';
import type { MasterFacts, NodeProgress, Revision, RevisionPlan, RevisionState } from './types.ts';

/** A master that is not Ready for longer than this does not delay the other masters. */
export const SET_ASIDE_MS = 120_000;
/** Delay after a revision failed on a host: 10 s, growing by half each time, at most 10 min. */
const FIRST_RETRY_MS = 10_000;
const LAST_RETRY_MS = 600_000;
/** Delay after a host returned to an older revision: 10 min, growing by half each time, at most 2 h. */
const FIRST_FALLBACK_RETRY_MS = 600_000;
const LAST_FALLBACK_RETRY_MS = 7_200_000;
const GROWTH = 1.5;

export function retryDelayMs({ count, fallbacks }: { readonly count: number; readonly fallbacks: number }): number {
  return fallbacks > 0
    ? Math.min(FIRST_FALLBACK_RETRY_MS * GROWTH ** (fallbacks - 1), LAST_FALLBACK_RETRY_MS)
    : Math.min(FIRST_RETRY_MS * GROWTH ** Math.max(0, count - 1), LAST_RETRY_MS);
}

/**
 * Returns the desired revisions and targets. The plan is deterministic and idempotent: planning again after a plan was
 * applied gives the same plan.
 */
export function planRevisions(state: RevisionState, nowMs: number): RevisionPlan {
  const revisions = withNewRevision(state);
  const latest = revisions.at(-1)?.revision ?? 0;
  const masters = [...state.masters].sort((left, right) => (left.name < right.name ? -1 : 1));
  const before = new Map(state.progress.map((each) => [each.nodeName, each]));
  const seen = masters.map((master) => observed(master, before.get(master.name), latest, nowMs));
  const { progress, wakeAtMs } = state.isManaged
    ? withTarget(seen, masters, latest, nowMs)
    : { progress: seen.map((each) => ({ ...each, targetRevision: 0 })), wakeAtMs: undefined };
  const phased = revisions.map((each) => phaseOf(each, latest, progress, masters, nowMs));
  const used = new Set([latest, ...progress.flatMap((each) => [each.currentRevision, each.targetRevision])]);
  const limits = { failed: state.keepFailed, succeeded: state.keepSucceeded };
  const pruned = prunable(
    phased.map(({ revision, phase }) => ({ revision, isGood: phase === 'Succeeded' })),
    used,
    limits,
  );
  return {
    latest,
    revisions: phased.filter(({ revision }) => !pruned.includes(revision)),
    progress,
    pruned,
    ...(wakeAtMs === undefined ? {} : { wakeAtMs }),
  };
}

function withNewRevision({ latest, overlay, revisions, masters }: RevisionState): Revision[] {
  const all = [...revisions].sort((left, right) => left.revision - right.revision);
  const newest = all.at(-1);
  const last = Math.max(latest, newest?.revision ?? 0);
  const make = (revision: number, reason: string, settings: string): Revision[] => [
    ...all,
    { revision, phase: 'InProgress', reason, overlay: settings },
  ];
  const reports = masters.flatMap(({ name, report }) => (report === undefined ? [] : [{ name, report }]));
  if (reports.length === 0) return all;
  // A host installs changed files by itself when it starts, or while no API server responds; publish its revision.
  const ahead = reports
    .filter(({ report }) => report.attempt.revision > last)
    .sort((left, right) => right.report.attempt.revision - left.report.attempt.revision)[0];
  if (ahead !== undefined) {
    const { attempt } = ahead.report;
    return make(attempt.revision, `${ahead.name}: ${attempt.reason}`, attempt.overlay);
  }
  if (newest === undefined) return make(last + 1, 'initial revision', overlay);
  if (newest.overlay !== overlay) return make(last + 1, changeOf(newest.overlay, overlay), overlay);
  const changed = reports
    .filter(
      ({ report: { attempt, digest } }) =>
        attempt.revision >= last && (digest !== attempt.digest || attempt.overlay !== newest.overlay),
    )
    .map(
      ({ name, report }) =>
        `${name}: ${[...report.changed, 'inputs'].slice(0, Math.max(1, report.changed.length)).join(', ')} changed`,
    );
  return changed.length === 0 ? all : make(last + 1, changed.join('; '), overlay);
}

/** Describes the settings that differ between two overlays, which are JSON objects or empty. */
function changeOf(before: string, after: string): string {
  const settings = (overlay: string): Readonly<Record<string, unknown>> =>
    overlay === '' ? {} : decodeJson(fields, overlay, 'overlay');
  const [left, right] = [settings(before), settings(after)];
  const keys = [...new Set([...Object.keys(left), ...Object.keys(right)])].sort();
  const value = (from: Readonly<Record<string, unknown>>, key: string): string => JSON.stringify(from[key]) ?? '';
  const differing = keys.filter((key) => value(left, key) !== value(right, key));
  return `spec changed: ${differing.map((key) => `spec.${key}`).join(', ')}`;
}

const isExcluded = ({ notReadySinceMs }: MasterFacts, nowMs: number): boolean =>
  notReadySinceMs !== undefined && nowMs - notReadySinceMs >= SET_ASIDE_MS;

/**
 * Updates a master's status from its report. The master's target is cleared when the target runs, when it has failed,
 * or when the master has been NotReady for too long.
 */
function observed(master: MasterFacts, before: NodeProgress | undefined, latest: number, nowMs: number): NodeProgress {
  const { report } = master;
  const failure = report?.failure;
  const target = before?.targetRevision ?? 0;
  const current = report?.current ?? before?.currentRevision ?? 0;
  const hasFailed =
    failure !== undefined &&
    failure.revision === target &&
    (before?.lastFailedRevision !== target || failure.count > before.lastFailedCount);
  const hasEnded = target === current || hasFailed || isExcluded(master, nowMs);
  return {
    nodeName: master.name,
    currentRevision: current,
    // A newer revision replaces the one that is being installed.
    targetRevision: target === 0 || hasEnded ? 0 : latest,
    lastFailedRevision: failure?.revision ?? 0,
    lastFailedTimeMs: failure?.atMs ?? 0,
    lastFailedReason: failure?.reason ?? '',
    lastFailedCount: failure?.count ?? 0,
    lastFallbackCount: failure?.fallbacks ?? 0,
    errors: failure?.errors ?? [],
  };
}

/** Sets the target of one master at a time, beginning with the master in the worst state. */
function withTarget(
  progress: readonly NodeProgress[],
  masters: readonly MasterFacts[],
  latest: number,
  nowMs: number,
): { readonly progress: readonly NodeProgress[]; readonly wakeAtMs: number | undefined } {
  const facts = new Map(masters.map((each) => [each.name, each]));
  const setAsideAt = masters
    .filter((each) => each.notReadySinceMs !== undefined && !isExcluded(each, nowMs))
    .map((each) => (each.notReadySinceMs ?? 0) + SET_ASIDE_MS);
  const wake = (...more: number[]): number | undefined => {
    const times = [...setAsideAt, ...more].filter((each) => each > nowMs);
    return times.length === 0 ? undefined : Math.min(...times);
  };
  if (progress.some(({ targetRevision }) => targetRevision !== 0)) return { progress, wakeAtMs: wake() };
  const behind = progress.filter(({ nodeName, currentRevision }) => {
    const master = facts.get(nodeName);
    return currentRevision !== latest && master?.report !== undefined && !isExcluded(master, nowMs);
  });
  if (behind.length === 0) return { progress, wakeAtMs: wake() };
  // A revision that failed on one master is not tried on other masters before it has succeeded on that master.
  const failed = behind.find(({ lastFailedRevision }) => lastFailedRevision === latest);
  const chosen = failed ?? [...behind].sort((left, right) => worstFirst(left, right, facts))[0];
  if (failed !== undefined) {
    const retryAtMs =
      failed.lastFailedTimeMs + retryDelayMs({ count: failed.lastFailedCount, fallbacks: failed.lastFallbackCount });
    if (retryAtMs > nowMs) return { progress, wakeAtMs: wake(retryAtMs) };
  }
  return {
    progress: progress.map((each) => (each === chosen ? { ...each, targetRevision: latest } : each)),
    wakeAtMs: wake(),
  };
}

function worstFirst(left: NodeProgress, right: NodeProgress, facts: ReadonlyMap<string, MasterFacts>): number {
  const rank = ({ nodeName }: NodeProgress): number => {
    const master = facts.get(nodeName);
    if (master?.notReadySinceMs !== undefined) return 0;
    return master?.report?.isHealthy === true ? 2 : 1;
  };
  return (
    rank(left) - rank(right) ||
    left.currentRevision - right.currentRevision ||
    (left.nodeName < right.nodeName ? -1 : 1)
  );
}

/**
 * Phase of a revision. A revision has succeeded once it runs on every master that is not excluded for being NotReady.
 */
function phaseOf(
  revision: Revision,
  latest: number,
  progress: readonly NodeProgress[],
  masters: readonly MasterFacts[],
  nowMs: number,
): Revision {
  const awaited = progress.filter((_, index) => {
    const master = masters[index];
    return master !== undefined && !isExcluded(master, nowMs);
  });
  const isReached = awaited.length > 0 && awaited.every((each) => each.currentRevision === revision.revision);
  if (isReached || revision.phase === 'Succeeded') return { ...revision, phase: 'Succeeded' };
  if (progress.some(({ lastFailedRevision }) => lastFailedRevision === revision.revision))
    return { ...revision, phase: 'Failed' };
  if (revision.phase === 'Failed') return revision;
  return { ...revision, phase: revision.revision < latest ? 'Abandoned' : 'InProgress' };
}

/**
 * Revisions and sizes that a deployment keeps in annotations of its replica sets. Source: upstream's
 * deployment_util.go.
 */
import type { Deployment, ReplicaSet } from '../../../api/generated/apps/v1.ts';

export const REVISION = 'deployment.kubernetes.io/revision';
export const REVISION_HISTORY = 'deployment.kubernetes.io/revision-history';
export const DESIRED_REPLICAS = 'deployment.kubernetes.io/desired-replicas';
export const MAX_REPLICAS = 'deployment.kubernetes.io/max-replicas';

/** Annotations that are not copied from a deployment to its replica sets, because they describe one object only. */
const NOT_COPIED = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  REVISION,
  REVISION_HISTORY,
  DESIRED_REPLICAS,
  MAX_REPLICAS,
  'deprecated.deployment.rollback.to',
]);

/** Maximum length of the revision history in an annotation of a replica set. Upstream's value. */
const MAX_HISTORY_CHARS = 2000;

/** Revision of a replica set, as a 64-bit number. The annotation is user input and may contain any number. */
export function revisionOf(set: ReplicaSet): bigint {
  return revisionFrom(set.metadata?.annotations?.[REVISION]);
}

export function maxRevision(sets: readonly ReplicaSet[]): bigint {
  let max = 0n;
  for (const set of sets) {
    const revision = revisionOf(set);
    if (revision > max) max = revision;
  }
  return max;
}

const MAX_REVISION = 2n ** 63n - 1n;

function revisionFrom(text: string | undefined): bigint {
  if (text === undefined || !/^\d{1,19}$/.test(text)) return 0n;
  const revision = BigInt(text);
  // The largest 64-bit number is not accepted as a revision, because it could not be incremented.
  return revision < MAX_REVISION ? revision : 0n;
}

export function desiredReplicasOf(set: ReplicaSet): number | undefined {
  return integer(set.metadata?.annotations?.[DESIRED_REPLICAS]);
}

export function maxReplicasOf(set: ReplicaSet): number | undefined {
  return integer(set.metadata?.annotations?.[MAX_REPLICAS]);
}

/**
 * Annotations of the current replica set: those of the deployment, and the revision if it is newer than the set's own.
 */
export function currentSetAnnotations(
  deployment: Deployment,
  existing: Readonly<Record<string, string>>,
  revision: bigint,
): Record<string, string> {
  const annotations: Record<string, string> = { ...existing };
  for (const [key, value] of Object.entries(deployment.metadata?.annotations ?? {})) {
    if (!NOT_COPIED.has(key)) annotations[key] = value;
  }
  const oldText = existing[REVISION];
  if (revisionFrom(oldText) < revision) {
    annotations[REVISION] = String(revision);
    if (oldText !== undefined) annotations[REVISION_HISTORY] = appendHistory(existing[REVISION_HISTORY], oldText);
  }
  return annotations;
}

function appendHistory(history: string | undefined, revision: string): string {
  if (history === undefined || history === '') return revision;
  let text = `${history},${revision}`;
  while (text.length > MAX_HISTORY_CHARS && text.includes(',')) text = text.slice(text.indexOf(',') + 1);
  return text;
}

function integer(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

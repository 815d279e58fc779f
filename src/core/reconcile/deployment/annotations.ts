/** Revisions and sizes that a deployment keeps in annotations of its replica sets. Source: upstream's deployment_util.go. */
import type { Deployment, ReplicaSet } from 'kubernetes-types/apps/v1';

export const REVISION = 'deployment.kubernetes.io/revision';
export const REVISION_HISTORY = 'deployment.kubernetes.io/revision-history';
export const DESIRED_REPLICAS = 'deployment.kubernetes.io/desired-replicas';
export const MAX_REPLICAS = 'deployment.kubernetes.io/max-replicas';

/** Not copied from a deployment to its replica sets: they speak of one object only. */
const NOT_COPIED = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  REVISION,
  REVISION_HISTORY,
  DESIRED_REPLICAS,
  MAX_REPLICAS,
  'deprecated.deployment.rollback.to',
]);

/** Bound on the remembered history of one replica set. Upstream's value. */
const MAX_HISTORY_CHARS = 2000;

export function revisionOf(set: ReplicaSet): number {
  return integer(set.metadata?.annotations?.[REVISION]) ?? 0;
}

export function maxRevision(sets: readonly ReplicaSet[]): number {
  return sets.reduce((max, set) => Math.max(max, revisionOf(set)), 0);
}

export function desiredReplicasOf(set: ReplicaSet): number | undefined {
  return integer(set.metadata?.annotations?.[DESIRED_REPLICAS]);
}

export function maxReplicasOf(set: ReplicaSet): number | undefined {
  return integer(set.metadata?.annotations?.[MAX_REPLICAS]);
}

/** The annotations of the current replica set: the deployment's own, and the revision when it is newer than the one it has. */
export function currentSetAnnotations(
  deployment: Deployment,
  existing: Readonly<Record<string, string>>,
  revision: number,
): Record<string, string> {
  const annotations: Record<string, string> = { ...existing };
  for (const [key, value] of Object.entries(deployment.metadata?.annotations ?? {})) {
    if (!NOT_COPIED.has(key)) annotations[key] = value;
  }
  const oldText = existing[REVISION];
  const old = integer(oldText) ?? 0;
  if (old < revision) {
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

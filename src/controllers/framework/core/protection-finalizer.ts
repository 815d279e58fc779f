/** Finalizer that keeps an object while it is in use. */
import type { KubeObject } from '../../../api/meta/object.ts';

export type ProtectionPlan = 'add' | 'remove' | 'keep';

export function planFinalizer({ metadata }: KubeObject, finalizer: string, isUsed: boolean): ProtectionPlan {
  const isThere = metadata?.finalizers?.includes(finalizer) === true;
  if (metadata?.deletionTimestamp === undefined) return isThere ? 'keep' : 'add';
  return isThere && !isUsed ? 'remove' : 'keep';
}

export function withPlannedFinalizer<T extends KubeObject>(object: T, finalizer: string, plan: 'add' | 'remove'): T {
  const others = (object.metadata?.finalizers ?? []).filter((each) => each !== finalizer);
  const finalizers = plan === 'add' ? [...others, finalizer] : others;
  return { ...object, metadata: { ...object.metadata, finalizers } };
}

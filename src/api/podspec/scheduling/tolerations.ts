/** Taints and tolerations. Source: k8s.io/component-helpers/scheduling/corev1. */
import type { Taint, Toleration } from '../../generated/core/v1.ts';

export function tolerates(toleration: Toleration, taint: Taint): boolean {
  if ((toleration.effect ?? '') !== '' && toleration.effect !== taint.effect) return false;
  if ((toleration.key ?? '') !== '' && toleration.key !== taint.key) return false;
  if (toleration.operator === 'Exists') return true;
  if ((toleration.key ?? '') === '') return false;
  return (toleration.operator ?? 'Equal') === 'Equal' && (toleration.value ?? '') === (taint.value ?? '');
}

/** Returns the first taint that has one of the `effects` and that no toleration matches. */
export function untoleratedTaint(
  taints: readonly Taint[] | undefined,
  tolerations: readonly Toleration[] | undefined,
  effects: readonly string[],
): Taint | undefined {
  return taints?.find(
    (taint) =>
      effects.includes(taint.effect) && !(tolerations ?? []).some((toleration) => tolerates(toleration, taint)),
  );
}

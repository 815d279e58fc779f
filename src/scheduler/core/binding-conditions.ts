/** Evaluates the binding conditions of an allocated claim: whether a pod can use its devices yet. Source: KEP-5007. */
import type { AllocationResult, ResourceClaim } from '../../api/devices/types.ts';

export type BindingState =
  | { readonly kind: 'ready' | 'waiting' }
  /** The devices cannot be used, so the claim must get other devices. */
  | { readonly kind: 'failed'; readonly why: string };

const resultsOf = ({ status }: ResourceClaim): readonly AllocationResult[] =>
  status?.allocation?.devices?.results ?? [];

export const hasBindingConditions = (claim: ResourceClaim): boolean =>
  resultsOf(claim).some(({ bindingConditions = [] }) => bindingConditions.length > 0);

/**
 * State of the claim's devices.
 *
 * @param timeoutMs Time after the allocation at which conditions that are not true count as failed.
 */
export function bindingState(claim: ResourceClaim, nowMs: number, timeoutMs: number): BindingState {
  const { allocation } = claim.status ?? {};
  if (allocation === undefined) return { kind: 'waiting' };
  const name = claim.metadata?.name ?? '';
  let ready = true;
  for (const result of resultsOf(claim)) {
    const { bindingConditions = [], bindingFailureConditions = [] } = result;
    if (bindingConditions.length === 0) continue;
    const conditions = conditionsOf(claim, result);
    const failed = conditions.find(({ type, status }) => status === 'True' && bindingFailureConditions.includes(type));
    if (failed !== undefined) {
      const { reason = '', message = '' } = failed;
      const detail = `claim=${name}, reason=${reason}, message=${JSON.stringify(message)}`;
      return { kind: 'failed', why: `device binding failed: ${detail}` };
    }
    ready &&= bindingConditions.every((wanted) =>
      conditions.some(({ type, status }) => type === wanted && status === 'True'),
    );
  }
  if (ready) return { kind: 'ready' };
  const sinceMs = Date.parse(allocation.allocationTimestamp ?? '');
  return sinceMs + timeoutMs < nowMs
    ? { kind: 'failed', why: `device binding timeout: claim=${name}` }
    : { kind: 'waiting' };
}

const conditionsOf = ({ status }: ResourceClaim, { driver, pool, device }: AllocationResult) =>
  status?.devices?.find((each) => each.driver === driver && each.pool === pool && each.device === device)?.conditions ??
  [];

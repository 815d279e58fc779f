import type { KubeObject } from '../../api/meta/object.ts';
import type { Informer } from '../../client/types.ts';
import type { RunScope } from './framework.ts';

/** Maximum number of candidates that one controller compares with changed objects in one turn. They take about 3 ms. */
const MAX_COMPARISONS = 5_000;

/**
 * Wakes the candidates of a namespace that are concerned by a change; of all namespaces if the namespace is undefined.
 */
export type CandidateWaker<C> = (namespace: string | undefined, isConcerned: (candidate: C) => boolean) => void;

/**
 * Creates a function that compares a changed object with candidates, for example a pod with the selectors of services.
 * Many changes in one turn, as after a start, are not compared with many candidates, because the time is the product of
 * both numbers. Instead, all candidates of their namespaces are woken in the next turn, so a candidate may be woken
 * without a reason.
 */
export function candidateWaker<C extends KubeObject>(
  scope: Pick<RunScope, 'after'>,
  candidates: Pick<Informer<C>, 'list'>,
  wake: (candidate: C) => void,
): CandidateWaker<C> {
  let left = MAX_COMPARISONS;
  let isLimited = false;
  const overdue = new Set<string | undefined>();
  const renew = (): void => {
    isLimited = false;
    left = MAX_COMPARISONS;
    const namespaces = [...overdue];
    overdue.clear();
    for (const namespace of namespaces) for (const candidate of candidates.list(namespace)) wake(candidate);
  };
  return (namespace, isConcerned) => {
    if (!isLimited) {
      isLimited = true;
      scope.after(0, renew);
    }
    if (left <= 0) {
      overdue.add(namespace);
      return;
    }
    const all = candidates.list(namespace);
    left -= all.length;
    for (const candidate of all) if (isConcerned(candidate)) wake(candidate);
  };
}

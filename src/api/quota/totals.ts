/**
 * Computes the usage of a quota from all objects. Source: pkg/controller/resourcequota,
 * k8s.io/apiserver/pkg/quota/v1/generic.
 */

import { compareQuantity, type Quantity, quantityOf } from '../../base/quantity.ts';
import type { ResourceQuota } from '../generated/core/v1.ts';
import type { KubeObject } from '../meta/object.ts';
import { type Amounts, addTo, amountsOf, filterAmounts, listOf, sameAmounts } from './amounts.ts';
import { countedBy, countName, evaluatorOf, type GroupResource } from './evaluators.ts';
import { scopesOf } from './scopes.ts';

export function countedKinds(quota: ResourceQuota): readonly GroupResource[] {
  const kinds = Object.keys(quota.spec?.hard ?? {}).map(countedBy);
  const byName = new Map(kinds.flatMap((kind) => (kind === undefined ? [] : [[countName(kind), kind] as const])));
  return [...byName.values()];
}

/**
 * Computes the usage of a quota. `objectsOf` returns all objects of a kind in the quota's namespace, or undefined if
 * they are unknown; the usage in the status is then kept.
 */
export function calculateUsage(
  quota: ResourceQuota,
  objectsOf: (kind: GroupResource) => readonly KubeObject[] | undefined,
  nowMs: number,
): Amounts {
  const hard = Object.keys(quota.spec?.hard ?? {});
  const scopes = scopesOf(quota);
  const before = amountsOf(quota.status?.used);
  const used = new Map<string, Quantity>();
  for (const name of hard) used.set(name, quantityOf(0));
  for (const kind of countedKinds(quota)) {
    const evaluator = evaluatorOf(kind);
    if (evaluator === undefined) continue;
    const objects = objectsOf(kind);
    if (objects === undefined) {
      for (const name of hard) if (evaluator.counts(name)) used.set(name, before.get(name) ?? quantityOf(0));
      continue;
    }
    for (const object of objects) {
      if (!scopes.every((scope) => evaluator.matchesScope(object, scope))) continue;
      addTo(
        used,
        filterAmounts(evaluator.usage(object, nowMs), (name) => used.has(name)),
      );
    }
  }
  return used;
}

export interface QuotaPlan {
  /** New status. Undefined if the status is correct, or if it is too high but must not be lowered yet. */
  readonly status: NonNullable<ResourceQuota['status']> | undefined;
  /** True if the status is too high and must not be lowered yet. */
  readonly isHeldBack: boolean;
}

/**
 * Computes the new status. Usage is raised at once, but lowered only with `mayLower`: the API server may have reserved
 * usage for objects that are not stored yet, or that the caller has not received yet.
 */
export function planStatus(quota: ResourceQuota, reckoned: Amounts, mayLower: boolean): QuotaPlan {
  const before = amountsOf(quota.status?.used);
  const used = new Map<string, Quantity>();
  let isHeldBack = false;
  for (const [name, quantity] of reckoned) {
    const previous = before.get(name);
    const keeps = previous !== undefined && !mayLower && compareQuantity(quantity, previous) < 0;
    if (keeps) isHeldBack = true;
    used.set(name, keeps ? previous : quantity);
  }
  const { hard } = quota.status ?? {};
  const isReported =
    hard !== undefined && sameAmounts(amountsOf(quota.spec?.hard), amountsOf(hard)) && sameAmounts(used, before);
  const status = isReported ? undefined : { hard: { ...quota.spec?.hard }, used: listOf(used) };
  return { status, isHeldBack };
}

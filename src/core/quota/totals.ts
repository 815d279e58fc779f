/**
 * What is used of a quota, reckoned from everything there is. Source: pkg/controller/resourcequota,
 * k8s.io/apiserver/pkg/quota/v1/generic.
 */
import type { ResourceQuota } from 'kubernetes-types/core/v1';
import type { KubeObject } from '../../api/meta/object.ts';
import { compareQuantity, type Quantity, quantityOf } from '../../base/quantity.ts';
import { type Amounts, addTo, amountsOf, listOf, pick, sameAmounts } from './amounts.ts';
import { countedBy, countName, evaluatorOf, type GroupResource } from './evaluators.ts';
import { scopesOf } from './scopes.ts';

/** The kinds that the quota counts. */
export function countedKinds(quota: ResourceQuota): readonly GroupResource[] {
  const kinds = Object.keys(quota.spec?.hard ?? {}).map(countedBy);
  const byName = new Map(kinds.flatMap((kind) => (kind === undefined ? [] : [[countName(kind), kind] as const])));
  return [...byName.values()];
}

/**
 * `objectsOf`: all of a kind in the quota's namespace; undefined: they are not known, and what is said of them stays.
 */
export function reckon(
  quota: ResourceQuota,
  objectsOf: (kind: GroupResource) => readonly KubeObject[] | undefined,
  nowMs: number,
): Amounts {
  const hard = Object.keys(quota.spec?.hard ?? {});
  const scopes = scopesOf(quota);
  const before = amountsOf(quota.status?.used as never);
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
        pick(evaluator.usage(object, nowMs), (name) => used.has(name)),
      );
    }
  }
  return used;
}

export interface QuotaPlan {
  /** Undefined: it is as it should be, or less is used than it says and it may not yet be lowered. */
  readonly status: NonNullable<ResourceQuota['status']> | undefined;
  /** Less is used than the quota goes on saying. */
  readonly isHeldBack: boolean;
}

/**
 * The status as it should be. More is said at once. Less only when `mayLower`: usage that the API server has just set
 * aside belongs to objects that may not be stored, or not have been seen here, yet.
 */
export function planStatus(quota: ResourceQuota, reckoned: Amounts, mayLower: boolean): QuotaPlan {
  const before = amountsOf(quota.status?.used as never);
  const used = new Map<string, Quantity>();
  let isHeldBack = false;
  for (const [name, quantity] of reckoned) {
    const said = before.get(name);
    const keeps = said !== undefined && !mayLower && compareQuantity(quantity, said) < 0;
    if (keeps) isHeldBack = true;
    used.set(name, keeps ? said : quantity);
  }
  const { hard } = quota.status ?? {};
  const isSaid =
    hard !== undefined &&
    sameAmounts(amountsOf(quota.spec?.hard as never), amountsOf(hard as never)) &&
    sameAmounts(used, before);
  const status = isSaid ? undefined : { hard: { ...quota.spec?.hard }, used: listOf(used) };
  return { status, isHeldBack };
}

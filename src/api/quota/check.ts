/**
 * Checks a request against the quotas of its namespace. Source: k8s.io/apiserver/pkg/admission/plugin/resourcequota
 * CheckRequest.
 */

import { compareQuantity } from '../../base/quantity.ts';
import type { ResourceQuota } from '../generated/core/v1.ts';
import type { KubeObject } from '../meta/object.ts';
import { type Amounts, addTo, amountsOf, amountsText, exceededAmounts, filterAmounts, namesText } from './amounts.ts';
import type { Evaluator } from './evaluators.ts';
import { type ScopeSelector, scopesOf, scopeText } from './scopes.ts';

/** A quota with its current usage. */
export interface QuotaState {
  readonly name: string;
  readonly quota: ResourceQuota;
  readonly used: Amounts;
}

/** Resources that may be used only where a quota covers them: upstream's `limitedResources` for this kind. */
export interface LimitedResource {
  readonly matchContains: readonly string[];
  readonly matchScopes: readonly ScopeSelector[];
}

export interface QuotaRequest {
  readonly evaluator: Evaluator;
  readonly object: KubeObject;
  readonly old: KubeObject | undefined;
  readonly limited: readonly LimitedResource[];
  readonly nowMs: number;
}

export type QuotaDecision =
  /** `plain`: the error must not name the object, as upstream's does not. */
  | { readonly kind: 'refused'; readonly message: string; readonly plain?: boolean }
  /** Amounts to charge, by the index of the quota. Empty if no quota applies. */
  | { readonly kind: 'allowed'; readonly charges: ReadonlyMap<number, Amounts> };

const refused = (message: string): QuotaDecision => ({ kind: 'refused', message });

export function checkRequest(quotas: readonly QuotaState[], request: QuotaRequest): QuotaDecision {
  const { evaluator, object } = request;
  const interesting: number[] = [];
  const covered = new Set<string>();
  const coveredScopes = new Set<string>();
  for (const [index, { name, quota, used }] of quotas.entries()) {
    const scopes = scopesOf(quota);
    for (const scope of scopes) if (evaluator.matchesScope(object, scope)) coveredScopes.add(scope.scopeName);
    if (!matches(quota, evaluator, object)) continue;
    const counted = Object.keys(quota.status?.hard ?? {}).filter((each) => evaluator.counts(each));
    const constraint = evaluator.constraint(counted, object);
    if (constraint !== undefined) return refused(`failed quota: ${name}: ${constraint}`);
    if (counted.some((each) => !used.has(each))) {
      return refused(`status unknown for quota: ${name}, resources: ${namesText(counted)}`);
    }
    interesting.push(index);
    for (const each of counted) covered.add(each);
  }
  const usage = evaluator.usage(object, request.nowMs);
  const negative = [...usage].filter(([, { nanos }]) => nanos < 0n).map(([name]) => name);
  if (negative.length > 0) return refused(`quota usage is negative for resource(s): ${namesText(negative)}`);
  const deltas = deltasOf(quotas, interesting, usage, request);
  if ([...deltas.values()].every((delta) => delta.size === 0)) return { kind: 'allowed', charges: new Map() };
  const uncovered = uncoveredBy(request, usage, covered, coveredScopes);
  if (uncovered !== undefined) return uncovered;
  return charge(quotas, interesting, deltas);
}

function matches(quota: ResourceQuota, evaluator: Evaluator, object: KubeObject): boolean {
  return (
    Object.keys(quota.status?.hard ?? {}).some((name) => evaluator.counts(name)) &&
    scopesOf(quota).every((scope) => evaluator.matchesScope(object, scope))
  );
}

const NO_QUOTA = -1;

/** Added usage for each quota. If a quota did not count the old object, it is charged for the whole new object. */
function deltasOf(
  quotas: readonly QuotaState[],
  interesting: readonly number[],
  usage: Amounts,
  { evaluator, old, nowMs }: QuotaRequest,
): Map<number, Amounts> {
  const more = old === undefined ? usage : exceededAmounts(usage, evaluator.usage(old, nowMs));
  const isSomething = (_name: string, { nanos }: { readonly nanos: bigint }): boolean => nanos !== 0n;
  const indexes = interesting.length === 0 ? [NO_QUOTA] : interesting;
  return new Map(
    indexes.map((index) => {
      const quota = quotas[index]?.quota;
      const isNew = old !== undefined && quota !== undefined && !matches(quota, evaluator, old);
      return [index, filterAmounts(isNew ? usage : more, isSomething)];
    }),
  );
}

function uncoveredBy(
  { limited, evaluator, object }: QuotaRequest,
  usage: Amounts,
  covered: ReadonlySet<string>,
  coveredScopes: ReadonlySet<string>,
): QuotaDecision | undefined {
  const names = [...usage.keys()].filter(
    (name) =>
      (usage.get(name)?.nanos ?? 0n) > 0n &&
      !covered.has(name) &&
      limited.some(({ matchContains }) => matchContains.some((part) => name.includes(part))),
  );
  if (names.length > 0) return refused(`insufficient quota to consume: ${namesText(names)}`);
  const scopes = limited
    .flatMap(({ matchScopes }) => matchScopes)
    .filter((scope) => evaluator.matchesScope(object, scope) && !coveredScopes.has(scope.scopeName));
  if (scopes.length === 0) return undefined;
  const message = `insufficient quota to match these scopes: [${scopes.map(scopeText).join(' ')}]`;
  return { kind: 'refused', message, plain: true };
}

function charge(
  quotas: readonly QuotaState[],
  interesting: readonly number[],
  deltas: ReadonlyMap<number, Amounts>,
): QuotaDecision {
  const charges = new Map<number, Amounts>();
  for (const index of interesting) {
    const state = quotas[index];
    const delta = deltas.get(index);
    if (state === undefined || delta === undefined) continue;
    const hard = amountsOf(state.quota.status?.hard);
    const requested = filterAmounts(delta, (name) => hard.has(name));
    if (requested.size === 0) continue;
    const after = new Map(state.used);
    addTo(after, requested);
    const exceeded = (name: string): boolean => {
      const [sum, bound] = [after.get(name), hard.get(name)];
      return sum !== undefined && bound !== undefined && requested.has(name) && compareQuantity(sum, bound) > 0;
    };
    const over = filterAmounts(requested, exceeded);
    if (over.size > 0) {
      return refused(
        `exceeded quota: ${state.name}, requested: ${amountsText(over)}, used: ${amountsText(filterAmounts(state.used, exceeded))}, limited: ${amountsText(filterAmounts(hard, exceeded))}`,
      );
    }
    charges.set(index, requested);
  }
  return { kind: 'allowed', charges };
}

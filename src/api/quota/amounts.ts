/** Exact amounts by resource name. A Map, because names come from users. Source: k8s.io/apiserver/pkg/quota/v1. */
import {
  addQuantity,
  compareQuantity,
  formatQuantity,
  type Quantity,
  quantityOf,
  subtractQuantity,
  tryParseQuantity,
} from '../../base/quantity.ts';

export type Amounts = ReadonlyMap<string, Quantity>;
type ResourceList = Readonly<Record<string, string | number>>;

export function amountsOf(list: ResourceList | undefined): Map<string, Quantity> {
  const amounts = new Map<string, Quantity>();
  for (const [name, text] of Object.entries(list ?? {})) {
    const quantity = tryParseQuantity(text);
    if (quantity !== undefined) amounts.set(name, quantity);
  }
  return amounts;
}

/** Amounts in JSON form, sorted by name, so that the document does not depend on the order of computation. */
export function listOf(amounts: Amounts): Record<string, string> {
  const names = [...amounts.keys()].sort();
  return Object.fromEntries(names.map((name) => [name, formatQuantity(amounts.get(name) ?? quantityOf(0))]));
}

export function addTo(target: Map<string, Quantity>, amounts: Amounts): void {
  for (const [name, quantity] of amounts) {
    const present = target.get(name);
    target.set(name, present === undefined ? quantity : addQuantity(present, quantity));
  }
}

/** Sets each name to the larger of both amounts. */
export function raiseTo(target: Map<string, Quantity>, amounts: Amounts): void {
  for (const [name, quantity] of amounts) {
    const present = target.get(name);
    if (present === undefined || compareQuantity(quantity, present) > 0) target.set(name, quantity);
  }
}

/** The part of `amounts` that exceeds `others`, at least zero. */
export function exceededAmounts(amounts: Amounts, others: Amounts): Map<string, Quantity> {
  const rest = new Map<string, Quantity>();
  for (const [name, quantity] of amounts) {
    const other = others.get(name);
    const left = other === undefined ? quantity : subtractQuantity(quantity, other);
    rest.set(name, left.nanos < 0n ? quantityOf(0, left.format) : left);
  }
  return rest;
}

export function filterAmounts(
  amounts: Amounts,
  wanted: (name: string, quantity: Quantity) => boolean,
): Map<string, Quantity> {
  return new Map([...amounts].filter(([name, quantity]) => wanted(name, quantity)));
}

export function sameAmounts(a: Amounts, b: Amounts): boolean {
  if (a.size !== b.size) return false;
  return [...a].every(([name, quantity]) => {
    const other = b.get(name);
    return other !== undefined && compareQuantity(quantity, other) === 0;
  });
}

/** Text such as `cpu=1,pods=2`. */
export function amountsText(amounts: Amounts): string {
  return Object.entries(listOf(amounts))
    .map(([name, text]) => `${name}=${text}`)
    .join(',');
}

export const namesText = (names: Iterable<string>): string => [...names].sort().join(',');

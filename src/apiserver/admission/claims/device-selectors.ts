/** Compiles the CEL selectors of devices. Source: k8s.io/dynamic-resource-allocation/cel. */

import type { Environment } from '../../../api/cel/compiled-expression.ts';
import { compile } from '../../../api/cel/language/compile.ts';
import { standardFunctions } from '../../../api/cel/library/index.ts';
import { BOOL, DYN, formatType, mapOf, STRING, structureOf, type Type } from '../../../api/cel/types.ts';
import type { DeviceSelector } from '../../../api/devices/types.ts';
import type { KubeObject } from '../../../api/meta/object.ts';

/**
 * Maximum cost of one evaluation. Source of this and the sizes below: k8s.io/api/resource/v1
 * CELSelectorExpressionMaxCost.
 */
const MAX_COST = 1_000_000;
const QUANTITY: Type = { kind: 'opaque', name: 'kubernetes.Quantity' };
const MOST_NAMES = 32;
const DOMAIN: Type = { ...STRING, max: 63 };
const ID: Type = { ...STRING, max: 32 };
const VALUE: Type = { ...DYN, max: 64 };
/** Map of values by domain, then by name. */
const byName = (value: Type): Type => mapOf(DOMAIN, mapOf(ID, value, MOST_NAMES), MOST_NAMES);
const DEVICE = structureOf('kubernetes.DRADevice', {
  driver: { ...STRING, max: 63 },
  attributes: byName(VALUE),
  capacity: byName(QUANTITY),
  allowMultipleAllocations: BOOL,
});

let environment: Environment | undefined;

/**
 * Compiles a selector and returns whether its estimated cost is within the limit. Throws an Error if it does not
 * compile or does not return a boolean.
 */
export function compileSelector(source: string): boolean {
  environment ??= { functions: standardFunctions(), variables: new Map([['device', DEVICE]]) };
  const { type, cost } = compile(source, environment);
  if (type.kind === 'bool' || type.kind === 'dyn') return cost <= MAX_COST;
  throw new Error(`must evaluate to bool or the unknown type, not ${formatType(type)}`);
}

/** Returns the selectors of an object with their field paths. */
export type SelectorReader = (object: KubeObject) => [DeviceSelector, string][];

export const classSelectors: SelectorReader = (object) => {
  const { spec } = object as { spec?: { selectors?: DeviceSelector[] } };
  return (spec?.selectors ?? []).map((selector, index) => [selector, `spec.selectors[${index}]`]);
};

/** Compiles the CEL selectors of devices. Source: k8s.io/dynamic-resource-allocation/cel. */
import type { DeviceSelector } from '../../../api/devices/types.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import { compile } from '../../../core/cel/compile.ts';
import { standardFunctions } from '../../../core/cel/library/index.ts';
import type { Environment } from '../../../core/cel/part.ts';
import { BOOL, DYN, formatType, mapOf, STRING, structureOf, type Type } from '../../../core/cel/types.ts';

/** What an evaluation may cost. Source: k8s.io/api/resource/v1 CELSelectorExpressionMaxCost, as the sizes below. */
const MAX_COST = 1_000_000;
const QUANTITY: Type = { kind: 'opaque', name: 'kubernetes.Quantity' };
const MOST_NAMES = 32;
const DOMAIN: Type = { ...STRING, max: 63 };
const ID: Type = { ...STRING, max: 32 };
const VALUE: Type = { ...DYN, max: 64 };
/** By domain, then by name. */
const byName = (value: Type): Type => mapOf(DOMAIN, mapOf(ID, value, MOST_NAMES), MOST_NAMES);
const DEVICE = structureOf('kubernetes.DRADevice', {
  driver: { ...STRING, max: 63 },
  attributes: byName(VALUE),
  capacity: byName(QUANTITY),
  allowMultipleAllocations: BOOL,
});

let environment: Environment | undefined;

/** Throws where it cannot be compiled, or gives something else than an answer; false: it may cost too much. */
export function compileSelector(source: string): boolean {
  environment ??= { functions: standardFunctions(), variables: new Map([['device', DEVICE]]) };
  const { type, cost } = compile(source, environment);
  if (type.kind === 'bool' || type.kind === 'dyn') return cost <= MAX_COST;
  throw new Error(`must evaluate to bool or the unknown type, not ${formatType(type)}`);
}

/** What selectors an object has, and where. */
export type SelectorReader = (object: KubeObject) => [DeviceSelector, string][];

export const classSelectors: SelectorReader = (object) => {
  const { spec } = object as { spec?: { selectors?: DeviceSelector[] } };
  return (spec?.selectors ?? []).map((selector, index) => [selector, `spec.selectors[${index}]`]);
};

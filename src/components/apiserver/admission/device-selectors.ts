/** Expressions that choose devices: that they can be compiled. Source: k8s.io/dynamic-resource-allocation/cel. */
import type { DeviceSelector } from '../../../api/devices/types.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import { compile } from '../../../core/cel/compile.ts';
import { standardFunctions } from '../../../core/cel/library/index.ts';
import type { Environment } from '../../../core/cel/part.ts';
import { BOOL, DYN, formatType, mapOf, STRING, structureOf, type Type } from '../../../core/cel/types.ts';

const QUANTITY: Type = { kind: 'opaque', name: 'kubernetes.Quantity' };
const DEVICE = structureOf('kubernetes.DRADevice', {
  driver: STRING,
  attributes: mapOf(STRING, mapOf(STRING, DYN)),
  capacity: mapOf(STRING, mapOf(STRING, QUANTITY)),
  allowMultipleAllocations: BOOL,
});

let environment: Environment | undefined;

/** Throws where it cannot be compiled, or gives something else than an answer. */
export function compileSelector(source: string): void {
  environment ??= { functions: standardFunctions(), variables: new Map([['device', DEVICE]]) };
  const { type } = compile(source, environment);
  if (type.kind === 'bool' || type.kind === 'dyn') return;
  throw new Error(`must evaluate to bool or the unknown type, not ${formatType(type)}`);
}

/** What selectors an object has, and where. */
export type SelectorReader = (object: KubeObject) => [DeviceSelector, string][];

export const classSelectors: SelectorReader = (object) => {
  const { spec } = object as { spec?: { selectors?: DeviceSelector[] } };
  return (spec?.selectors ?? []).map((selector, index) => [selector, `spec.selectors[${index}]`]);
};

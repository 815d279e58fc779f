/** Evaluates CEL selectors of device classes and requests. Source: k8s.io/dynamic-resource-allocation/cel. */

import { Budget, type Program } from '../../api/cel/compiled-expression.ts';
import { ANY_READER, fromJson, type JsonReader } from '../../api/cel/documents.ts';
import { compile } from '../../api/cel/language/compile.ts';
import { standardFunctions } from '../../api/cel/library/index.ts';
import { DYN } from '../../api/cel/types.ts';
import { Opaque } from '../../api/cel/values.ts';
import type { Device } from '../../api/devices/types.ts';
import type { JsonObject } from '../../api/meta/object.ts';
import { BoundedMap } from '../../base/bounded-map.ts';
import { tryParseQuantity } from '../../base/quantity.ts';

/** Cost limit of one evaluation. It is the same in upstream. */
const MAX_COST = 1_000_000;
const MAX_PROGRAMS = 512;

/** Reader that converts all values to quantities, for the capacities of a device. */
const QUANTITIES: JsonReader = {
  ...ANY_READER,
  field: (name) => ({ key: name, reader: QUANTITIES }),
  get items() {
    return QUANTITIES;
  },
  text: (value) => {
    const quantity = tryParseQuantity(value);
    return quantity === undefined ? value : new Opaque('kubernetes.Quantity', quantity, String(quantity.nanos));
  },
};
const DEVICE: JsonReader = {
  ...ANY_READER,
  field: (name) => ({ key: name, reader: name === 'capacity' ? QUANTITIES : ANY_READER }),
  get items() {
    return ANY_READER;
  },
};

export class DeviceSelectors {
  readonly #programs = new BoundedMap<string, Program | undefined>(MAX_PROGRAMS);

  /**
   * Whether the device satisfies the selector. False if the expression cannot be compiled or evaluated for the device.
   */
  meets(expression: string, driver: string, device: Device): boolean {
    const program = this.#program(expression);
    if (program === undefined) return false;
    const value = fromJson(documentOf(driver, device), DEVICE);
    try {
      return program.evaluate(() => value, new Budget(MAX_COST)) === true;
    } catch {
      return false;
    }
  }

  #program(expression: string): Program | undefined {
    if (this.#programs.has(expression)) return this.#programs.get(expression);
    let program: Program | undefined;
    try {
      program = compile(expression, { functions: standardFunctions(), variables: new Map([['device', DYN]]) });
    } catch {
      program = undefined;
    }
    this.#programs.set(expression, program);
    return program;
  }
}

/**
 * Variable `device` of the expressions, with attributes and capacities by domain. A name without a domain belongs to
 * the domain of the driver.
 */
function documentOf(driver: string, device: Device): JsonObject {
  const attributes = grouped(driver, device.attributes ?? {}, (value) => Object.values(value)[0]);
  const capacity = grouped(driver, device.capacity ?? {}, ({ value }) => String(value ?? '0'));
  return { driver, attributes, capacity, allowMultipleAllocations: device.allowMultipleAllocations === true };
}

function grouped<T>(driver: string, items: Readonly<Record<string, T>>, read: (item: T) => unknown): JsonObject {
  const domains = new Map<string, [string, unknown][]>([[driver, []]]);
  for (const [name, item] of Object.entries(items)) {
    const slash = name.indexOf('/');
    const domain = slash < 0 ? driver : name.slice(0, slash);
    domains.set(domain, [...(domains.get(domain) ?? []), [name.slice(slash + 1), read(item)]]);
  }
  return Object.fromEntries([...domains].map(([domain, pairs]) => [domain, Object.fromEntries(pairs)])) as JsonObject;
}

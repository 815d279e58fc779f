/** Validation of ResourceSlices. Source: k8s.io/kubernetes/pkg/apis/resource/validation ValidateResourceSlice. */
import { semanticEqual } from '../meta/equality.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet, utf8Length, validateImmutable } from '../meta/validation.ts';
import { validateNodeSelector } from '../podspec/placement.ts';
import { validateCapacity } from './capacity.ts';
import {
  MAX_LIST,
  validateBinding,
  validateDeviceTaints,
  validateDriver,
  validateItems,
  validateLabelName,
  validatePoolName,
  validateQualifiedName,
  validateSubdomain,
} from './shared-rules.ts';
import type { Device, ResourceSlice } from './types.ts';

const MAX_DEVICES = 128;
const MAX_DEVICES_ADVANCED = 64;
const MAX_COUNTER_SETS = 8;
const MAX_CONSUMPTIONS = 2;
const MAX_VALUE = 64;
const VALUES = ['bool', 'int', 'string', 'version'];
const LISTS = ['bools', 'ints', 'strings', 'versions'];
/** Maximum length of a name in error paths. Longer names are truncated. */
const MAX_SHOWN = 63 + 1 + 32;
/** Pattern from semver.org. */
const SEMVER =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$/;

type Spec = NonNullable<ResourceSlice['spec']>;

/**
 * Drops fields of feature gates that are off by default in 1.36 (DRAListTypeAttributes, DRANodeAllocatableResources),
 * unless the stored object uses them.
 */
export function dropUnsupported(slice: ResourceSlice, old?: ResourceSlice): void {
  const uses = (field: 'attributes' | 'nodeAllocatableResourceMappings'): boolean =>
    (old?.spec?.devices ?? []).some((device) =>
      field === 'attributes'
        ? Object.values(device.attributes ?? {}).some((value) => LISTS.some((list) => value[list] !== undefined))
        : Object.keys(device[field] ?? {}).length > 0,
    );
  const [lists, mappings] = [uses('attributes'), uses('nodeAllocatableResourceMappings')];
  for (const device of slice.spec?.devices ?? []) {
    if (!mappings) delete device.nodeAllocatableResourceMappings;
    if (!lists)
      for (const value of Object.values(device.attributes ?? {})) for (const list of LISTS) delete value[list];
  }
}

/** Warns about driver names that are not lower case. */
export function sliceWarnings({ spec }: ResourceSlice): string[] {
  const driver = spec?.driver ?? '';
  if (driver === driver.toLowerCase()) return [];
  return [`spec.driver: driver names should be lowercase; ${JSON.stringify(driver)} contains uppercase characters`];
}

/** Validates a slice. `old`: the stored slice, whose unchanged capacities and taints are not validated again. */
export function validateSlice(slice: ResourceSlice, old?: ResourceSlice): FieldError[] {
  const spec: Spec = slice.spec ?? {};
  const { pool = {}, devices, sharedCounters } = spec;
  const errors = [...validateDriver(spec.driver, 'spec.driver'), ...validatePoolName(pool.name, 'spec.pool.name')];
  const { generation = 0, resourceSliceCount = 0 } = pool;
  if (resourceSliceCount <= 0) {
    errors.push(fieldError.invalid('spec.pool.resourceSliceCount', resourceSliceCount, 'must be greater than zero'));
  }
  if (generation < 0) {
    errors.push(fieldError.invalid('spec.pool.generation', generation, 'must be greater than or equal to zero'));
  }
  errors.push(...validateNodes(spec));
  if (devices !== undefined && sharedCounters !== undefined) {
    errors.push(fieldError.invalid('spec', '', 'only one of `sharedCounters` or `devices` is allowed'));
  }
  const advanced = devices?.some(
    ({ taints, consumesCounters, attributes }) =>
      (taints ?? []).length > 0 ||
      (consumesCounters ?? []).length > 0 ||
      Object.values(attributes ?? {}).some((value) => LISTS.some((list) => value[list] !== undefined)),
  );
  const most = advanced === true ? MAX_DEVICES_ADVANCED : MAX_DEVICES;
  const named = ({ name }: { name?: string }) => name ?? '';
  // The list is reversed, so that of devices with the same name the first is used. Another check reports duplicates.
  const before = new Map([...(old?.spec?.devices ?? [])].reverse().map((device) => [named(device), device]));
  errors.push(
    ...validateItems(
      devices,
      most,
      'spec.devices',
      (device, at) => validateDevice(device, at, spec.perDeviceNodeSelection === true, before.get(named(device))),
      named,
    ),
    ...validateItems(
      sharedCounters,
      MAX_COUNTER_SETS,
      'spec.sharedCounters',
      ({ name, counters }, at) => [...validateCounterSet(name, `${at}.name`), ...validateCounters(counters, at)],
      named,
    ),
  );
  return errors;
}

export const validateSliceUpdate = (slice: ResourceSlice, old: ResourceSlice): FieldError[] => [
  ...validateImmutable(slice.spec?.pool?.name, old.spec?.pool?.name, 'spec.pool.name'),
  ...validateImmutable(slice.spec?.driver, old.spec?.driver, 'spec.driver'),
  ...validateImmutable(slice.spec?.nodeName, old.spec?.nodeName, 'spec.nodeName'),
];

const given = (fields: readonly string[]): string => `{${fields.map((each) => `\`${each}\``).join(', ')}}`;

/** Requires exactly one field that selects the nodes for the slice. */
function validateNodes(spec: Spec): FieldError[] {
  const { nodeSelector } = spec;
  const errors = validateNodeName(spec.nodeName, 'spec.nodeName', 'must be either unset or set to a non-empty string');
  if (nodeSelector !== undefined) {
    const terms = nodeSelector.nodeSelectorTerms ?? [];
    errors.push(...validateNodeSelector(nodeSelector, 'spec.nodeSelector'));
    if (terms.length !== 1) {
      const where = 'spec.nodeSelector.nodeSelectorTerms';
      errors.push(fieldError.invalid(where, terms, 'must have exactly one node selector term'));
    }
  }
  for (const field of ['allNodes', 'perDeviceNodeSelection'] as const) {
    errors.push(...validateTrue(spec[field], `spec.${field}`));
  }
  const set = (['nodeName', 'nodeSelector', 'allNodes', 'perDeviceNodeSelection'] as const).filter(
    (each) => spec[each],
  );
  const rule = 'exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required';
  if (set.length === 0) errors.push(fieldError.required('spec', rule));
  if (set.length > 1) {
    errors.push(fieldError.invalid('spec', given(set), `${rule}, but multiple fields are set`));
  }
  return errors;
}

function validateNodeName(name: string | undefined, at: string, rule: string): FieldError[] {
  if (name === undefined) return [];
  return name === '' ? [fieldError.invalid(at, name, rule)] : validateSubdomain(name, at);
}

const validateTrue = (value: boolean | undefined, at: string): FieldError[] =>
  value === false ? [fieldError.invalid(at, false, 'must be either unset or set to true')] : [];

/** Validates the node selection of a device, which is only allowed if the slice has perDeviceNodeSelection. */
function validateDeviceNodes(device: Device, at: string, own: boolean): FieldError[] {
  const { nodeName, nodeSelector, allNodes } = device;
  if (!own) {
    if (nodeName === undefined && nodeSelector === undefined && allNodes === undefined) return [];
    const rule =
      '`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec';
    return [fieldError.invalid(at, null, rule)];
  }
  const errors = [
    ...validateNodeName(nodeName, `${at}.nodeName`, 'must not be empty'),
    ...(nodeSelector === undefined ? [] : validateNodeSelector(nodeSelector, `${at}.nodeSelector`)),
    ...validateTrue(allNodes, `${at}.allNodes`),
  ];
  const set = (['nodeName', 'nodeSelector', 'allNodes'] as const).filter((each) => device[each]);
  const rule =
    'exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec';
  if (set.length === 0) errors.push(fieldError.required(at, rule));
  if (set.length > 1) errors.push(fieldError.invalid(at, given(set), rule));
  return errors;
}

/** Name of an attribute or capacity in error paths. */
function shown(name: string): string {
  if (utf8Length(name) <= MAX_SHOWN) return name;
  const rest = MAX_SHOWN - '...'.length;
  return `${name.slice(0, Math.ceil(rest / 2))}...${name.slice(-Math.floor(rest / 2))}`;
}

function validateDevice(device: Device, at: string, ownNodes: boolean, old: Device | undefined): FieldError[] {
  const attributes = Object.entries(device.attributes ?? {});
  const capacity = Object.entries(device.capacity ?? {});
  const errors = validateLabelName(device.name, `${at}.name`);
  const total = attributes.length + capacity.length;
  if (total > MAX_LIST) {
    const rule = `the total number of attributes and capacities must not exceed ${MAX_LIST}`;
    errors.push(fieldError.invalid(at, total, rule));
  }
  for (const [name, value] of attributes) {
    errors.push(
      ...validateQualifiedName(name, `${at}.attributes`),
      ...validateAttribute(value, `${at}.attributes[${shown(name)}]`),
    );
  }
  if (old === undefined || !semanticEqual(device.capacity, old.capacity)) {
    for (const [name, value] of capacity) {
      errors.push(
        ...validateQualifiedName(name, `${at}.capacity`),
        ...validateCapacity(value, `${at}.capacity[${shown(name)}]`, device.allowMultipleAllocations === true),
      );
    }
  }
  if (old === undefined || !semanticEqual(device.taints, old.taints)) {
    errors.push(...validateDeviceTaints(device.taints, `${at}.taints`));
  }
  errors.push(
    ...validateItems(
      device.consumesCounters,
      MAX_CONSUMPTIONS,
      `${at}.consumesCounters`,
      ({ counterSet, counters }, where) => [
        ...validateCounterSet(counterSet, `${where}.counterSet`),
        ...validateCounters(counters, where),
      ],
      ({ counterSet }) => counterSet ?? '',
    ),
  );
  return [...errors, ...validateDeviceNodes(device, at, ownNodes), ...validateBinding(device, at)];
}

const validateCounterSet = (name: string | undefined, at: string): FieldError[] =>
  isSet(name) ? validateLabelName(name, at) : [fieldError.required(at)];

function validateCounters(counters: Readonly<Record<string, unknown>> = {}, at: string): FieldError[] {
  const names = Object.keys(counters);
  if (names.length === 0) return [fieldError.required(`${at}.counters`)];
  if (names.length > MAX_LIST) return [fieldError.tooMany(`${at}.counters`, names.length, MAX_LIST)];
  return names.flatMap((name) => validateLabelName(name, `${at}.counters`));
}

/** Validates an attribute. `dropUnsupported` has dropped lists unless the stored object has them. */
function validateAttribute(attribute: Readonly<Record<string, unknown>>, at: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const field of ['string', 'version'] as const) {
    const text = attribute[field];
    if (typeof text !== 'string') continue;
    if (field === 'version' && !SEMVER.test(text)) {
      const rule = 'must be a string compatible with semver.org spec 2.0.0';
      errors.push(fieldError.invalid(`${at}.${field}`, text, rule));
    }
    if (utf8Length(text) > MAX_VALUE) errors.push(fieldError.tooLong(`${at}.${field}`, MAX_VALUE));
  }
  const set = [...VALUES, ...LISTS].filter((each) => attribute[each] !== undefined);
  if (set.length === 1) return errors;
  return [...errors, fieldError.invalid(at, set.length === 0 ? '' : attribute, 'exactly one value must be specified')];
}

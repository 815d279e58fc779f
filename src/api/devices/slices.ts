/** What drivers publish. Source: k8s.io/kubernetes/pkg/apis/resource/validation ValidateResourceSlice. */
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet, utf8Length, validateImmutable } from '../meta/validation.ts';
import { validateNodeSelector } from '../podspec/placement.ts';
import {
  MAX_LIST,
  validateDeviceTaints,
  validateDriver,
  validateItems,
  validateLabelName,
  validatePoolName,
  validateQualifiedName,
  validateSubdomain,
} from './parts.ts';
import type { Device, ResourceSlice } from './types.ts';

const MAX_DEVICES = 128;
const MAX_DEVICES_ADVANCED = 64;
const MAX_COUNTER_SETS = 8;
const MAX_CONSUMPTIONS = 2;
const MAX_VALUE = 64;
const VALUES = ['bool', 'bools', 'int', 'ints', 'string', 'strings', 'version', 'versions'];
/** Of semver.org. */
const SEMVER =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$/;

type Spec = NonNullable<ResourceSlice['spec']>;

export function validateSlice(slice: ResourceSlice): FieldError[] {
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
  errors.push(...validateNodes(spec, 'spec', ['nodeName', 'nodeSelector', 'allNodes', 'perDeviceNodeSelection']));
  const advanced = devices?.some(({ taints, consumesCounters }) => (taints ?? consumesCounters ?? []).length > 0);
  const most = advanced === true ? MAX_DEVICES_ADVANCED : MAX_DEVICES;
  const named = ({ name }: { name?: string }) => ({ value: name, field: 'name' });
  errors.push(
    ...validateItems(
      devices,
      most,
      'spec.devices',
      (device, at) => validateDevice(device, at, spec.perDeviceNodeSelection === true),
      named,
    ),
    ...validateItems(
      sharedCounters,
      MAX_COUNTER_SETS,
      'spec.sharedCounters',
      ({ name, counters }, at) => [...validateLabelName(name, `${at}.name`), ...validateCounters(counters, at)],
      named,
    ),
  );
  if ((devices ?? []).length > 0 && (sharedCounters ?? []).length > 0) {
    errors.push(
      fieldError.invalid(
        'spec',
        '{`devices`, `sharedCounters`}',
        'only one of `devices` and `sharedCounters` can be set',
      ),
    );
  }
  return errors;
}

export const validateSliceUpdate = (slice: ResourceSlice, old: ResourceSlice): FieldError[] => [
  ...validateImmutable(slice.spec?.pool?.name, old.spec?.pool?.name, 'spec.pool.name'),
  ...validateImmutable(slice.spec?.driver, old.spec?.driver, 'spec.driver'),
  ...validateImmutable(slice.spec?.nodeName, old.spec?.nodeName, 'spec.nodeName'),
];

/** Which nodes reach it: exactly one of `fields` says so. */
function validateNodes(of: Spec, at: string, fields: readonly (keyof Spec)[]): FieldError[] {
  const errors: FieldError[] = [];
  const { nodeName, nodeSelector } = of;
  if (nodeName === '') {
    const rule = 'must be either unset or set to a non-empty string';
    errors.push(fieldError.invalid(`${at}.nodeName`, nodeName, rule));
  } else if (nodeName !== undefined) errors.push(...validateSubdomain(nodeName, `${at}.nodeName`));
  if (nodeSelector !== undefined) {
    const terms = nodeSelector.nodeSelectorTerms ?? [];
    errors.push(...validateNodeSelector(nodeSelector, `${at}.nodeSelector`));
    if (terms.length !== 1) {
      const where = `${at}.nodeSelector.nodeSelectorTerms`;
      errors.push(fieldError.invalid(where, terms, 'must have exactly one node selector term'));
    }
  }
  for (const field of ['allNodes', 'perDeviceNodeSelection'] as const) {
    if (of[field] === false) {
      errors.push(fieldError.invalid(`${at}.${field}`, false, 'must be either unset or set to true'));
    }
  }
  const set = fields.filter((field) => of[field] !== undefined && of[field] !== false && of[field] !== '');
  const rule = `exactly one of ${fields.map((each) => `\`${each}\``).join(', ')} is required`;
  if (set.length === 0) errors.push(fieldError.required(at, rule));
  if (set.length > 1) {
    const given = `{${set.map((each) => `\`${each}\``).join(', ')}}`;
    errors.push(fieldError.invalid(at, given, `${rule}, but multiple fields are set`));
  }
  return errors;
}

function validateDevice(device: Device, at: string, ownNodes: boolean): FieldError[] {
  const attributes = Object.entries(device.attributes ?? {});
  const capacity = Object.keys(device.capacity ?? {});
  const errors = validateLabelName(device.name, `${at}.name`);
  const total = attributes.length + capacity.length;
  if (total > MAX_LIST) {
    const rule = `the total number of attributes and capacities must not exceed ${MAX_LIST}`;
    errors.push(fieldError.invalid(at, total, rule));
  }
  for (const [name, value] of attributes) {
    errors.push(
      ...validateQualifiedName(name, `${at}.attributes[${name}]`),
      ...validateAttribute(value, `${at}.attributes[${name}]`),
    );
  }
  for (const name of capacity) errors.push(...validateQualifiedName(name, `${at}.capacity[${name}]`));
  errors.push(...validateDeviceTaints(device.taints, `${at}.taints`));
  errors.push(
    ...validateItems(
      device.consumesCounters,
      MAX_CONSUMPTIONS,
      `${at}.consumesCounters`,
      ({ counterSet, counters }, where) => [
        ...validateLabelName(counterSet, `${where}.counterSet`),
        ...validateCounters(counters, where),
      ],
      ({ counterSet }) => ({ value: counterSet, field: 'counterSet' }),
    ),
  );
  if (ownNodes) return [...errors, ...validateNodes(device, at, ['nodeName', 'nodeSelector', 'allNodes'])];
  for (const field of ['nodeName', 'nodeSelector', 'allNodes'] as const) {
    if (device[field] === undefined) continue;
    const rule = '`perDeviceNodeSelection` is set to true in the slice';
    errors.push(fieldError.invalid(`${at}.${field}`, device[field], `${field} can only be set if ${rule}`));
  }
  return errors;
}

function validateCounters(counters: Readonly<Record<string, unknown>> = {}, at: string): FieldError[] {
  const names = Object.keys(counters);
  if (names.length === 0) return [fieldError.required(`${at}.counters`)];
  if (names.length > MAX_LIST) return [fieldError.tooMany(`${at}.counters`, names.length, MAX_LIST)];
  return names.flatMap((name) => validateLabelName(name, `${at}.counters`));
}

function validateAttribute(attribute: Readonly<Record<string, unknown>>, at: string): FieldError[] {
  const set = VALUES.filter((each) => attribute[each] !== undefined);
  if (set.length === 0) return [fieldError.required(at, 'exactly one value must be specified')];
  if (set.length > 1) return [fieldError.invalid(at, attribute, 'exactly one value must be specified')];
  const [field = ''] = set;
  const texts = [attribute[field]].flat().filter((each) => typeof each === 'string');
  return texts.flatMap((text) => {
    const errors = utf8Length(text) > MAX_VALUE ? [fieldError.tooLong(`${at}.${field}`, MAX_VALUE)] : [];
    if (field.startsWith('version') && !(isSet(text) && SEMVER.test(text))) {
      errors.push(fieldError.invalid(`${at}.${field}`, text, 'must be a string compatible with semver.org spec 2.0.0'));
    }
    return errors;
  });
}

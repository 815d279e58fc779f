/** What was found for a claim. Source: k8s.io/kubernetes/pkg/apis/resource/validation ValidateResourceClaimStatusUpdate. */
import { semanticEqual } from '../meta/equality.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { IMMUTABLE_MESSAGE, isSet, utf8Length } from '../meta/validation.ts';
import { validateNodeSelector } from '../podspec/placement.ts';
import { validateInterfaceAddress } from '../validation/addresses.ts';
import { requestNames, validateReference } from './claims.ts';
import {
  MAX_LIST,
  validateConfiguration,
  validateDriver,
  validateItems,
  validateLabelName,
  validatePoolName,
  validateRaw,
} from './parts.ts';
import type { AllocatedDevice, DeviceStatus, ResourceClaim } from './types.ts';

const MAX_RESERVED = 256;
const MAX_CONDITIONS = 8;
const MAX_IPS = 16;
const MAX_INTERFACE = 256;
const MAX_HARDWARE = 128;
const AT = 'status';

type Status = NonNullable<ResourceClaim['status']>;
type Consumer = NonNullable<Status['reservedFor']>[number];
const keyOf = ({ driver, pool, device, shareID }: AllocatedDevice): string =>
  [driver, pool, device, ...(shareID === undefined ? [] : [shareID])].join('/');

export function validateClaimStatusUpdate(claim: ResourceClaim, old: ResourceClaim): FieldError[] {
  const { allocation, reservedFor, devices }: Status = claim.status ?? {};
  const before = old.status ?? {};
  const errors = validateItems(reservedFor, MAX_RESERVED, `${AT}.reservedFor`, validateConsumer, ({ uid }) => ({
    value: uid,
    field: 'uid',
  }));
  const results = new Set(allocation?.devices?.results?.map(keyOf));
  errors.push(
    ...validateItems(
      devices,
      results.size,
      `${AT}.devices`,
      (device, where) => validateDeviceStatus(device, where, results),
      (device) => ({ value: keyOf(device) }),
    ),
  );
  if (allocation !== undefined && before.allocation === undefined) {
    errors.push(...validateAllocation(allocation, requestNames(claim.spec)));
  }
  if (allocation !== undefined && before.allocation !== undefined && !semanticEqual(allocation, before.allocation)) {
    errors.push(fieldError.invalid(`${AT}.allocation`, allocation, IMMUTABLE_MESSAGE));
  }
  if ((reservedFor ?? []).length > 0) errors.push(...validateReserving(claim, old));
  return errors;
}

function validateReserving(claim: ResourceClaim, old: ResourceClaim): FieldError[] {
  const at = `${AT}.reservedFor`;
  if (claim.status?.allocation === undefined) {
    return [fieldError.forbidden(at, 'may not be specified when `allocated` is not set')];
  }
  if (claim.metadata?.deletionTimestamp === undefined) return [];
  const known = new Set(old.status?.reservedFor?.map(({ uid }) => uid));
  return claim.status.reservedFor?.every(({ uid }) => known.has(uid)) === true
    ? []
    : [fieldError.forbidden(at, 'new entries may not be added while `deletionTimestamp` is set')];
}

function validateConsumer(consumer: Consumer, at: string): FieldError[] {
  return (['resource', 'name', 'uid'] as const)
    .filter((field) => !isSet(consumer[field]))
    .map((field) => fieldError.required(`${at}.${field}`));
}

const validateDevice = (device: AllocatedDevice, at: string): FieldError[] => [
  ...validateDriver(device.driver, `${at}.driver`),
  ...validatePoolName(device.pool, `${at}.pool`),
  ...validateLabelName(device.device, `${at}.device`),
];

function validateAllocation(allocation: NonNullable<Status['allocation']>, names: ReadonlySet<string>): FieldError[] {
  const at = `${AT}.allocation`;
  const { devices, nodeSelector } = allocation;
  const terms = nodeSelector?.nodeSelectorTerms ?? [];
  const errors = [
    ...validateItems(devices?.results, MAX_LIST, `${at}.devices.results`, (result, where) => [
      ...validateReference(result.request ?? '', `${where}.request`, names),
      ...validateDevice(result, where),
    ]),
    ...validateItems(devices?.config, 2 * MAX_LIST, `${at}.devices.config`, validateConfiguration),
    ...(nodeSelector === undefined ? [] : validateNodeSelector(nodeSelector, `${at}.nodeSelector`)),
  ];
  if (nodeSelector !== undefined && terms.length !== 1) {
    const where = `${at}.nodeSelector.nodeSelectorTerms`;
    errors.push(fieldError.invalid(where, terms, 'must have exactly one node selector term'));
  }
  return errors;
}

function validateDeviceStatus(device: DeviceStatus, at: string, results: ReadonlySet<string>): FieldError[] {
  const errors = validateDevice(device, at);
  if (!results.has(keyOf(device))) {
    errors.push(fieldError.invalid(at, keyOf(device), 'must be an allocated device in the claim'));
  }
  const conditions = device.conditions?.length ?? 0;
  if (conditions > MAX_CONDITIONS) errors.push(fieldError.tooMany(`${at}.conditions`, conditions, MAX_CONDITIONS));
  if (device.data !== undefined) errors.push(...validateRaw(device.data, `${at}.data`));
  const { interfaceName = '', hardwareAddress = '', ips } = device.networkData ?? {};
  const network = `${at}.networkData`;
  if (utf8Length(interfaceName) > MAX_INTERFACE) {
    errors.push(fieldError.tooLong(`${network}.interfaceName`, MAX_INTERFACE));
  }
  if (utf8Length(hardwareAddress) > MAX_HARDWARE) {
    errors.push(fieldError.tooLong(`${network}.hardwareAddress`, MAX_HARDWARE));
  }
  return [
    ...errors,
    ...validateItems(
      ips,
      MAX_IPS,
      `${network}.ips`,
      (ip, where) => validateInterfaceAddress(ip, where),
      (value) => ({ value }),
    ),
  ];
}

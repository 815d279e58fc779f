/**
 * Validation of the status of a ResourceClaim. Source: k8s.io/kubernetes/pkg/apis/resource/validation
 * ValidateResourceClaimStatusUpdate.
 */
import { semanticEqual } from '../meta/equality.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { IMMUTABLE_MESSAGE, isSet, utf8Length } from '../meta/validation.ts';
import { validateNodeSelector } from '../podspec/placement.ts';
import { validateInterfaceAddress } from '../validation/addresses.ts';
import { validateStandardConditions } from '../validation/conditions.ts';
import { validateOneOf } from '../validation/scalars.ts';
import { requestNames, validateReference, validateReferences } from './claims.ts';
import {
  MAX_LIST,
  validateBinding,
  validateConfiguration,
  validateDeviceTolerations,
  validateDriver,
  validateItems,
  validateLabelName,
  validatePoolName,
  validateRaw,
  validateUuid,
} from './shared-rules.ts';
import type {
  AllocatedConfiguration,
  AllocatedDevice,
  AllocationResult,
  DeviceStatus,
  ResourceClaim,
} from './types.ts';

const MAX_RESERVED = 256;
const MAX_CONDITIONS = 8;
const MAX_IPS = 16;
const MAX_INTERFACE = 256;
const MAX_HARDWARE = 128;
const SOURCES = ['FromClaim', 'FromClass'];
const AT = 'status';

type Status = NonNullable<ResourceClaim['status']>;
type Consumer = NonNullable<Status['reservedFor']>[number];
const keyOf = ({ driver, pool, device, shareID }: AllocatedDevice): string =>
  [driver, pool, device, ...(shareID === undefined ? [] : [shareID])].join('/');

export function validateClaimStatusUpdate(claim: ResourceClaim, old: ResourceClaim): FieldError[] {
  const { allocation, reservedFor, devices }: Status = claim.status ?? {};
  const before = old.status ?? {};
  const errors = validateItems(
    reservedFor,
    MAX_RESERVED,
    `${AT}.reservedFor`,
    validateConsumer,
    ({ uid }) => uid ?? '',
  );
  const results = new Set(allocation?.devices?.results?.map(keyOf));
  errors.push(
    ...validateItems(
      devices,
      Number.POSITIVE_INFINITY,
      `${AT}.devices`,
      (device, where) => validateDeviceStatus(device, where, results),
      keyOf,
    ),
  );
  if ((reservedFor ?? []).length > 0) errors.push(...validateReserving(claim, old));
  if (allocation === undefined) return errors;
  // An existing allocation is not validated again, because rules may have changed since.
  if (before.allocation === undefined) errors.push(...validateAllocation(allocation, requestNames(claim.spec)));
  else if (!semanticEqual(allocation, before.allocation)) {
    errors.push(fieldError.invalid(`${AT}.allocation`, allocation, IMMUTABLE_MESSAGE));
  }
  return errors;
}

/** Drops the status of devices that are no longer allocated. */
export function dropReleasedDevices({ status }: ResourceClaim, old: ResourceClaim): void {
  if (status?.devices === undefined) return;
  const released = new Set(old.status?.allocation?.devices?.results?.map(keyOf));
  for (const result of status.allocation?.devices?.results ?? []) released.delete(keyOf(result));
  const left = status.devices.filter((device) => !released.has(keyOf(device)));
  if (left.length === 0) delete status.devices;
  else status.devices = left;
}

function validateReserving(claim: ResourceClaim, old: ResourceClaim): FieldError[] {
  const at = `${AT}.reservedFor`;
  if (claim.status?.allocation === undefined) {
    return [fieldError.forbidden(at, 'may not be specified when `allocated` is not set')];
  }
  if (claim.metadata?.deletionTimestamp === undefined) return [];
  const whole = ({ apiGroup = '', resource = '', name = '', uid = '' }: Consumer): string =>
    JSON.stringify([apiGroup, resource, name, uid]);
  const known = new Set(old.status?.reservedFor?.map(whole));
  const rule = 'new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set';
  return claim.status.reservedFor?.every((each) => known.has(whole(each))) === true
    ? []
    : [fieldError.forbidden(at, rule)];
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
  return [
    ...validateItems(devices?.results, MAX_LIST, `${at}.devices.results`, (result, where) =>
      validateResult(result, where, names),
    ),
    ...validateItems(devices?.config, 2 * MAX_LIST, `${at}.devices.config`, (config, where) =>
      validateAllocated(config, where, names),
    ),
    ...(nodeSelector === undefined ? [] : validateNodeSelector(nodeSelector, `${at}.nodeSelector`)),
  ];
}

const validateResult = (result: AllocationResult, at: string, names: ReadonlySet<string>): FieldError[] => [
  ...validateReference(result.request ?? '', `${at}.request`, names),
  ...validateDevice(result, at),
  ...validateBinding(result, at),
  ...validateDeviceTolerations(result.tolerations, `${at}.tolerations`),
  ...validateShare(result, at),
];

const validateShare = ({ shareID }: AllocatedDevice, at: string): FieldError[] =>
  shareID === undefined ? [] : validateUuid(shareID, `${at}.shareID`);

const validateAllocated = (config: AllocatedConfiguration, at: string, names: ReadonlySet<string>): FieldError[] => [
  ...validateOneOf(config.source, SOURCES, `${at}.source`),
  ...validateReferences(config.requests, at, names),
  ...validateConfiguration(config, at),
];

function validateDeviceStatus(device: DeviceStatus, at: string, results: ReadonlySet<string>): FieldError[] {
  const errors = [...validateDevice(device, at), ...validateShare(device, at)];
  if (!results.has(keyOf(device))) {
    errors.push(fieldError.invalid(at, keyOf(device), 'must be an allocated device in the claim'));
  }
  const conditions = device.conditions?.length ?? 0;
  if (conditions > MAX_CONDITIONS) errors.push(fieldError.tooMany(`${at}.conditions`, conditions, MAX_CONDITIONS));
  errors.push(...validateStandardConditions(device.conditions ?? [], `${at}.conditions`));
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
      (ip) => ip,
    ),
  ];
}

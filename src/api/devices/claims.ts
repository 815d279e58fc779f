/**
 * Defaults and validation of the spec of a ResourceClaim. Source:
 * k8s.io/kubernetes/pkg/apis/resource/{v1/defaults.go,validation}.
 */
import { type FieldError, fieldError } from '../meta/field-error.ts';
import {
  MAX_LIST,
  validateConfiguration,
  validateDeviceTolerations,
  validateItems,
  validateLabelName,
  validateQualifiedName,
  validateSelectors,
  validateSubdomain,
} from './shared-rules.ts';
import type { ClaimSpec, DeviceConstraint, DeviceRequest, DeviceSelector, ExactRequest } from './types.ts';

const MAX_ALTERNATIVES = 8;
const MODES = ['All', 'ExactCount'];
const REFERENCE_RULE =
  "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

const exactRequests = (request: DeviceRequest): ExactRequest[] => [
  ...(request.exactly === undefined ? [] : [request.exactly]),
  ...(request.firstAvailable ?? []),
];

export function setClaimDefaults(spec: ClaimSpec | undefined): void {
  for (const each of (spec?.devices?.requests ?? []).flatMap(exactRequests)) {
    if (each.allocationMode === undefined || each.allocationMode === '') each.allocationMode = 'ExactCount';
    if (each.allocationMode === 'ExactCount' && (each.count ?? 0) === 0) each.count = 1;
    for (const toleration of each.tolerations ?? []) toleration.operator ||= 'Equal';
  }
}

/** Device selectors of a claim, with their field paths. */
export function claimSelectors(spec: ClaimSpec | undefined, at: string): [DeviceSelector, string][] {
  return (spec?.devices?.requests ?? []).flatMap(({ exactly, firstAvailable }, index) => {
    const where = `${at}.devices.requests[${index}]`;
    const of = (request: ExactRequest, place: string): [DeviceSelector, string][] =>
      (request.selectors ?? []).map((selector, each) => [selector, `${place}.selectors[${each}]`]);
    return [
      ...(exactly === undefined ? [] : of(exactly, `${where}.exactly`)),
      ...(firstAvailable ?? []).flatMap((each, place) => of(each, `${where}.firstAvailable[${place}]`)),
    ];
  });
}

/** Names of requests, and of subrequests in the form REQUEST/SUBREQUEST. */
export function requestNames(spec: ClaimSpec | undefined): ReadonlySet<string> {
  return new Set(
    (spec?.devices?.requests ?? []).flatMap(({ name, firstAvailable }) => [
      name ?? '',
      ...(firstAvailable ?? []).map((each) => `${name}/${each.name}`),
    ]),
  );
}

export function validateReference(name: string, at: string, names: ReadonlySet<string>): FieldError[] {
  const segments = name.split('/');
  if (segments.length > 2) return [fieldError.invalid(at, name, REFERENCE_RULE)];
  const errors = segments.flatMap((segment) => validateLabelName(segment, at));
  return names.has(name) ? errors : [...errors, fieldError.invalid(at, name, REFERENCE_RULE)];
}

/** Validates references to requests of the claim. Duplicates are errors. */
export const validateReferences = (
  given: readonly string[] | undefined,
  at: string,
  names: ReadonlySet<string>,
): FieldError[] =>
  validateItems(
    given,
    MAX_LIST,
    `${at}.requests`,
    (name, where) => validateReference(name, where, names),
    (name) => name,
  );

export function validateClaimSpec(spec: ClaimSpec | undefined, path: string): FieldError[] {
  const at = `${path}.devices`;
  const names = requestNames(spec);
  return [
    ...validateItems(spec?.devices?.requests, MAX_LIST, `${at}.requests`, validateRequest, ({ name }) => name ?? ''),
    ...validateItems(spec?.devices?.constraints, MAX_LIST, `${at}.constraints`, (constraint, where) => [
      ...validateReferences(constraint.requests, where, names),
      ...validateConstraint(constraint, where),
    ]),
    ...validateItems(spec?.devices?.config, MAX_LIST, `${at}.config`, (config, where) => [
      ...validateReferences(config.requests, where, names),
      ...validateConfiguration(config, where),
    ]),
  ];
}

function validateRequest({ name, exactly, firstAvailable = [] }: DeviceRequest, at: string): FieldError[] {
  const errors = validateLabelName(name, `${at}.name`);
  const ONE = 'exactly one of `exactly` or `firstAvailable` is required';
  if (exactly === undefined && firstAvailable.length === 0) errors.push(fieldError.required(at, ONE));
  else if (exactly === undefined) {
    errors.push(
      ...validateItems(
        firstAvailable,
        MAX_ALTERNATIVES,
        `${at}.firstAvailable`,
        (each, where) => [...validateLabelName(each.name, `${where}.name`), ...validateExact(each, where)],
        (each) => each.name ?? '',
      ),
    );
  } else if (firstAvailable.length === 0) errors.push(...validateExact(exactly, `${at}.exactly`));
  else errors.push(fieldError.invalid(at, null, `${ONE}, but multiple fields are set`));
  return errors;
}

function validateExact(request: ExactRequest, at: string): FieldError[] {
  const { allocationMode = '', count = 0 } = request;
  const errors = [
    ...validateSubdomain(request.deviceClassName, `${at}.deviceClassName`),
    ...validateSelectors(request.selectors, `${at}.selectors`),
  ];
  if (!MODES.includes(allocationMode)) {
    errors.push(fieldError.notSupported(`${at}.allocationMode`, allocationMode, MODES));
  } else if (allocationMode === 'All' && count !== 0) {
    errors.push(fieldError.invalid(`${at}.count`, count, "must not be specified when allocationMode is 'All'"));
  } else if (allocationMode === 'ExactCount' && count <= 0) {
    errors.push(fieldError.invalid(`${at}.count`, count, 'must be greater than zero'));
  }
  return [...errors, ...validateDeviceTolerations(request.tolerations, `${at}.tolerations`)];
}

function validateConstraint({ matchAttribute, distinctAttribute }: DeviceConstraint, at: string): FieldError[] {
  if (matchAttribute !== undefined) return validateQualifiedName(matchAttribute, `${at}.matchAttribute`, true);
  if (distinctAttribute !== undefined) return validateQualifiedName(distinctAttribute, `${at}.distinctAttribute`, true);
  // The wording is upstream's, although the error is only reported if no field is set. If both are set, the first is
  // used.
  const words = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set';
  return [fieldError.required(at, words)];
}

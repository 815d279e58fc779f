/**
 * Validation of operator.openshift.io. Fields that this cluster does not support are rejected with their path. Source:
 * the validation markers of openshift/api operator/v1.
 */
import { semanticEqual } from '../../../../api/meta/equality.ts';
import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';
import type { OperatorObject, StaticPodOperator } from './types.ts';

const LOG_LEVELS = ['Normal', 'Debug', 'Trace', 'TraceAll'];
const STATES = ['Managed', 'Unmanaged', 'Force', 'Removed'];
/** Maximum number of revisions to keep. It is limited because every revision is a copy of all input files. */
const MAX_REVISIONS = 50;
const MAX_ARGUMENTS = 100;
const MAX_ARGUMENT_LENGTH = 4096;

function oneOf(field: string, value: unknown, allowed: readonly string[]): FieldError[] {
  if (value === undefined || value === '' || allowed.includes(String(value))) return [];
  return [fieldError.notSupported(field, value, allowed)];
}

/** Validates the fields that all operators have. `states`: values of managementState that the component supports. */
export function validateOperator({ spec = {} }: OperatorObject, states: readonly string[] = STATES): FieldError[] {
  return [
    ...oneOf('spec.managementState', spec.managementState, states),
    ...oneOf('spec.logLevel', spec.logLevel, LOG_LEVELS),
    ...oneOf('spec.operatorLogLevel', spec.operatorLogLevel, LOG_LEVELS),
    ...(isRaised(spec.operatorLogLevel)
      ? [fieldError.forbidden('spec.operatorLogLevel', 'the controller logs at the level of the host process')]
      : []),
  ];
}

/** Whether the log level is valid and more verbose than the default, Normal. */
const isRaised = (level: string | undefined): boolean => LOG_LEVELS.indexOf(level ?? '') > 0;

function limit(field: string, value: number | undefined): FieldError[] {
  if (value === undefined || (value >= -1 && value <= MAX_REVISIONS)) return [];
  return [fieldError.invalid(field, value, `must be between -1 and ${MAX_REVISIONS}, inclusive`)];
}

/** Supported management states of the control plane. It cannot be removed, so `Removed` is not supported. */
const STATIC_POD_STATES = ['Managed', 'Unmanaged', 'Force'];

/**
 * Creates the validation of a static pod operator.
 *
 * @param overridable Field of unsupportedConfigOverrides with the component's flags, whose values are lists of strings.
 * Undefined if the component has no such field.
 */
export const validateStaticPodOperator =
  (overridable: string | undefined, hasLogLevel = true) =>
  (object: StaticPodOperator): FieldError[] => {
    const { spec = {} } = object;
    return [
      ...validateOperator(object, STATIC_POD_STATES),
      ...limit('spec.failedRevisionLimit', spec.failedRevisionLimit),
      ...limit('spec.succeededRevisionLimit', spec.succeededRevisionLimit),
      ...(spec.useMoreSecureServiceCA === true
        ? [fieldError.forbidden('spec.useMoreSecureServiceCA', 'service accounts have one authority in this cluster')]
        : []),
      ...(!hasLogLevel && isRaised(spec.logLevel)
        ? [fieldError.forbidden('spec.logLevel', 'the scheduler shares a process with the controllers; set it there')]
        : []),
      ...overrides(spec.unsupportedConfigOverrides, overridable),
    ];
  };

function overrides(value: unknown, overridable: string | undefined): FieldError[] {
  const field = 'spec.unsupportedConfigOverrides';
  if (value === undefined || value === null) return [];
  if (typeof value !== 'object' || Array.isArray(value)) return [fieldError.invalid(field, value, 'must be an object')];
  const errors: FieldError[] = [];
  for (const [key, flags] of Object.entries(value)) {
    if (key === overridable) errors.push(...argumentsOf(`${field}.${key}`, flags));
    else if (overridable === undefined)
      errors.push(fieldError.forbidden(`${field}.${key}`, 'the component has no settings that can be overridden'));
    else errors.push(fieldError.notSupported(`${field}.${key}`, key, [overridable]));
  }
  return errors;
}

function argumentsOf(field: string, flags: unknown): FieldError[] {
  if (typeof flags !== 'object' || flags === null || Array.isArray(flags))
    return [fieldError.invalid(field, flags, 'must be an object whose values are lists of strings')];
  const entries = Object.entries(flags);
  if (entries.length > MAX_ARGUMENTS) return [fieldError.tooMany(field, entries.length, MAX_ARGUMENTS)];
  return entries.flatMap(([flag, values]) => {
    const at = `${field}[${flag}]`;
    if (!/^[a-z][a-z0-9-]*$/.test(flag))
      return [fieldError.invalid(at, flag, 'must be a flag without dashes in front')];
    const isList = Array.isArray(values) && values.every((each) => typeof each === 'string');
    if (!isList) return [fieldError.invalid(at, values, 'must be a list of strings')];
    return (values as string[]).some((each) => each.length > MAX_ARGUMENT_LENGTH)
      ? [fieldError.invalid(at, '', `must be at most ${MAX_ARGUMENT_LENGTH} characters`)]
      : [];
  });
}

/**
 * Validates updates of kinds that only report status. Changes of `spec` are rejected, because the settings are in the
 * bootstrap file.
 */
export function validateReported(object: OperatorObject, old: OperatorObject): FieldError[] {
  const { spec = {} } = object;
  const before = old.spec ?? {};
  return Object.keys({ ...before, ...spec })
    .filter((key) => !semanticEqual(spec[key as keyof typeof spec], before[key as keyof typeof before]))
    .map((key) =>
      fieldError.forbidden(`spec.${key}`, 'may not be changed here; change the bootstrap file of the masters'),
    );
}

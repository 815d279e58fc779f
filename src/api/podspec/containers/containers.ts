/**
 * Validation of init, regular and ephemeral containers. Source: k8s.io/kubernetes/pkg/apis/core/validation
 * validateContainers and related functions.
 */

import { dns1123LabelErrors, portNameErrors } from '../../../base/names.ts';
import type { Container, ContainerPort, EphemeralContainer, PodSpec } from '../../generated/core/v1.ts';
import { type FieldError, fieldError } from '../../meta/field-error.ts';
import { isSet } from '../../meta/validation.ts';
import {
  validateNameRule,
  validateOneOf,
  validateOptionalOneOf,
  validatePortNumber,
} from '../../validation/scalars.ts';
import type { Volumes } from '../volumes.ts';
import { validateEnv, validateEnvFrom } from './env.ts';
import { validateVolumeDevices, validateVolumeMounts } from './mounts.ts';
import { validateLifecycle, validateProbe } from './probes.ts';
import { validateResources } from './resources.ts';
import { validateSecurityContext } from './security.ts';

/** Context for the validation of containers. */
export interface ContainerContext {
  readonly spec: PodSpec;
  readonly volumes: Volumes;
  readonly claims: ReadonlySet<string>;
  /** terminationGracePeriodSeconds of the pod. Undefined if it is missing, which another check reports. */
  readonly graceSeconds: number | undefined;
  /** True for a pod, false for a pod template. */
  readonly isPod: boolean;
}

const PULL_POLICIES = ['Always', 'IfNotPresent', 'Never'];
const MESSAGE_POLICIES = ['File', 'FallbackToLogsOnError'];
const RESTART_POLICIES = ['Always', 'Never', 'OnFailure'];
const MAX_RESTART_RULES = 20;
const MAX_EXIT_CODES = 255;

export function validateContainers(context: ContainerContext, path: string): FieldError[] {
  const containers = context.spec.containers ?? [];
  const errors: FieldError[] = [];
  if (containers.length === 0) return [fieldError.required(`${path}.containers`)];
  const names = new Set<string>();
  containers.forEach((container, index) => {
    const at = `${path}.containers[${index}]`;
    errors.push(...validateName(container.name, at, names));
    errors.push(...validateContainer(container, at, context));
    errors.push(...validateLifecycle(container.lifecycle, `${at}.lifecycle`, context.graceSeconds));
    errors.push(...validateProbes(container, at, context));
    errors.push(...validateRestarts(container, at));
  });
  errors.push(...validateHostPorts(containers, `${path}.containers`));
  return errors;
}

export function validateInitContainers(context: ContainerContext, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set((context.spec.containers ?? []).map((container) => container.name));
  (context.spec.initContainers ?? []).forEach((container, index) => {
    const at = `${path}.initContainers[${index}]`;
    errors.push(...validateName(container.name, at, names));
    errors.push(...validateContainer(container, at, context));
    errors.push(...validateRestarts(container, at));
    // Init containers run one after the other, so they may use the same host ports.
    errors.push(...validateHostPorts([container], `${path}.initContainers`));
    if (container.restartPolicy === 'Always') {
      errors.push(...validateLifecycle(container.lifecycle, `${at}.lifecycle`, context.graceSeconds));
      errors.push(...validateProbes(container, at, context));
      return;
    }
    for (const field of ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'] as const) {
      if (container[field] !== undefined) {
        errors.push(
          fieldError.forbidden(`${at}.${field}`, 'may not be set for init containers without restartPolicy=Always'),
        );
      }
    }
  });
  return errors;
}

/** Fields that ephemeral containers must not have, in upstream's order. */
const NOT_FOR_EPHEMERAL = [
  'ports',
  'resources',
  'resizePolicy',
  'restartPolicy',
  'restartPolicyRules',
  'livenessProbe',
  'readinessProbe',
  'startupProbe',
  'lifecycle',
] as const;

export function validateEphemeralContainers(context: ContainerContext, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set(
    [...(context.spec.containers ?? []), ...(context.spec.initContainers ?? [])].map((container) => container.name),
  );
  const targets = new Set(names);
  (context.spec.ephemeralContainers ?? []).forEach((container, index) => {
    const at = `${path}.ephemeralContainers[${index}]`;
    errors.push(...validateName(container.name, at, names));
    errors.push(...validateContainer(container, at, context));
    if (isSet(container.targetContainerName) && !targets.has(container.targetContainerName)) {
      errors.push(fieldError.notFound(`${at}.targetContainerName`, container.targetContainerName));
    }
    const forbid = (field: string): void => {
      errors.push(fieldError.forbidden(`${at}.${field}`, 'cannot be set for an Ephemeral Container'));
    };
    for (const field of NOT_FOR_EPHEMERAL) {
      const value = (container as Readonly<Record<string, unknown>>)[field];
      if (value !== undefined && !(field === 'resources' && Object.keys(value as object).length === 0)) forbid(field);
    }
    (container.volumeMounts ?? []).forEach((mount, position) => {
      if (isSet(mount.subPath)) forbid(`volumeMounts[${position}].subPath`);
      if (isSet(mount.subPathExpr)) forbid(`volumeMounts[${position}].subPathExpr`);
    });
  });
  return errors;
}

function validateName(name: string | undefined, at: string, names: Set<string>): FieldError[] {
  if (!isSet(name)) return [fieldError.required(`${at}.name`)];
  const errors = validateNameRule(name, dns1123LabelErrors, `${at}.name`);
  if (names.has(name)) errors.push(fieldError.duplicate(`${at}.name`, name));
  names.add(name);
  return errors;
}

function validateContainer(
  container: Container | EphemeralContainer,
  at: string,
  context: ContainerContext,
): FieldError[] {
  const errors: FieldError[] = [];
  const { image } = container;
  if (!isSet(image)) errors.push(fieldError.required(`${at}.image`));
  else if (context.isPod && image.trim() !== image) {
    errors.push(fieldError.invalid(`${at}.image`, image, 'must not have leading or trailing whitespace'));
  }
  errors.push(
    ...validateOneOf(container.terminationMessagePolicy, MESSAGE_POLICIES, `${at}.terminationMessagePolicy`),
    ...validatePorts(container.ports, `${at}.ports`),
    ...validateEnv(container.env, `${at}.env`),
    ...validateEnvFrom(container.envFrom, `${at}.envFrom`),
    ...validateVolumeMounts(container, context.volumes, `${at}.volumeMounts`),
    ...validateVolumeDevices(container, context.volumes, `${at}.volumeDevices`),
    ...validateOneOf(container.imagePullPolicy, PULL_POLICIES, `${at}.imagePullPolicy`),
    ...validateResources(container.resources, `${at}.resources`, context.claims),
    ...validateResizePolicy(container, `${at}.resizePolicy`, context.spec.restartPolicy === 'Never'),
    ...validateSecurityContext(container.securityContext, `${at}.securityContext`, context.spec.hostUsers !== false),
  );
  return errors;
}

function validateProbes(container: Container, at: string, { graceSeconds }: ContainerContext): FieldError[] {
  return (['livenessProbe', 'readinessProbe', 'startupProbe'] as const).flatMap((kind) =>
    validateProbe(container[kind], kind, `${at}.${kind}`, graceSeconds),
  );
}

function validatePorts(ports: readonly ContainerPort[] | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set<string>();
  (ports ?? []).forEach((port, index) => {
    const at = `${path}[${index}]`;
    if (isSet(port.name)) {
      const wrong = validateNameRule(port.name, portNameErrors, `${at}.name`);
      errors.push(...wrong);
      if (wrong.length === 0) {
        if (names.has(port.name)) errors.push(fieldError.duplicate(`${at}.name`, port.name));
        names.add(port.name);
      }
    }
    if ((port.containerPort ?? 0) === 0) errors.push(fieldError.required(`${at}.containerPort`));
    else errors.push(...validatePortNumber(port.containerPort, `${at}.containerPort`));
    if ((port.hostPort ?? 0) !== 0) errors.push(...validatePortNumber(port.hostPort, `${at}.hostPort`));
    errors.push(...validateOneOf(port.protocol, ['SCTP', 'TCP', 'UDP'], `${at}.protocol`));
  });
  return errors;
}

/** Requires that host ports equal container ports if hostNetwork is set. In a template, host ports may be omitted. */
export function validateHostNetworkPorts({ spec, isPod }: ContainerContext, path: string): FieldError[] {
  if (spec.hostNetwork !== true) return [];
  return (spec.containers ?? []).flatMap((container, index) =>
    ((container.ports ?? []) as ContainerPort[]).flatMap((port, position) => {
      const { hostPort = 0, containerPort = 0 } = port;
      if (hostPort === containerPort || (hostPort === 0 && !isPod)) return [];
      const at = `${path}.containers[${index}].ports[${position}].hostPort`;
      return [fieldError.invalid(at, hostPort, 'must match `containerPort` when `hostNetwork` is true')];
    }),
  );
}

function validateHostPorts(containers: readonly Container[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  const used = new Set<string>();
  containers.forEach((container, index) => {
    (container.ports ?? []).forEach((port, portIndex) => {
      if ((port.hostPort ?? 0) === 0) return;
      const key = `${port.protocol}/${port.hostIP ?? ''}/${port.hostPort}`;
      if (used.has(key)) errors.push(fieldError.duplicate(`${path}[${index}].ports[${portIndex}].hostPort`, key));
      used.add(key);
    });
  });
  return errors;
}

function validateResizePolicy(
  container: Container | EphemeralContainer,
  path: string,
  neverRestarts: boolean,
): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  (container.resizePolicy ?? []).forEach((policy, index) => {
    if (seen.has(policy.resourceName)) errors.push(fieldError.duplicate(`${path}[${index}]`, policy.resourceName));
    seen.add(policy.resourceName);
    errors.push(...validateOneOf(policy.resourceName, ['cpu', 'memory'], path));
    errors.push(...validateOneOf(policy.restartPolicy, ['NotRequired', 'RestartContainer'], path));
    if (neverRestarts && policy.restartPolicy !== 'NotRequired') {
      const why = "must be 'NotRequired' when `restartPolicy` is 'Never'";
      errors.push(fieldError.invalid(path, policy.restartPolicy ?? '', why));
    }
  });
  return errors;
}

const RESTART_ACTIONS: readonly string[] = ['Restart', 'RestartAllContainers'];

/** Validates the restart policy and rules of a container, which may differ from the pod's policy. */
function validateRestarts(container: Container, at: string): FieldError[] {
  const { restartPolicy, restartPolicyRules } = container;
  const errors = validateOptionalOneOf(restartPolicy, RESTART_POLICIES, `${at}.restartPolicy`);
  const rules = restartPolicyRules ?? [];
  if (rules.length === 0) return errors;
  const path = `${at}.restartPolicyRules`;
  if (restartPolicy === undefined) {
    errors.push(fieldError.required(`${at}.restartPolicy`, 'must specify restartPolicy when restart rules are used'));
  }
  if (rules.length > MAX_RESTART_RULES) errors.push(fieldError.tooMany(path, rules.length, MAX_RESTART_RULES));
  rules.forEach(({ action = '', exitCodes }, index) => {
    const rule = `${path}[${index}]`;
    if (!RESTART_ACTIONS.includes(action))
      errors.push(fieldError.notSupported(`${rule}.action`, action, RESTART_ACTIONS));
    if (exitCodes === undefined) errors.push(fieldError.required(`${rule}.exitCodes`, 'must be specified'));
    else {
      const { operator = '', values = [] } = exitCodes;
      const codes = `${rule}.exitCodes`;
      if (operator !== 'In' && operator !== 'NotIn') {
        errors.push(fieldError.notSupported(`${codes}.operator`, operator, ['In', 'NotIn']));
      }
      if (values.length === 0) errors.push(fieldError.required(`${codes}.values`, 'must be specified'));
      if (values.length > MAX_EXIT_CODES)
        errors.push(fieldError.tooMany(`${codes}.values`, values.length, MAX_EXIT_CODES));
    }
  });
  return errors;
}

/** Validation of containers of all three sorts. Source: k8s.io/kubernetes/pkg/apis/core/validation validateContainers and relatives. */
import type { Container, ContainerPort, EphemeralContainer, PodSpec } from 'kubernetes-types/core/v1';
import { dns1123LabelErrors, portNameErrors } from '../../base/names.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet } from '../meta/validation.ts';
import { validateIp, validateNameRule, validateOneOf, validatePortNumber } from '../validation/scalars.ts';
import { validateEnv, validateEnvFrom } from './env.ts';
import { validateLifecycle, validateProbe } from './probes.ts';
import { validateResources } from './resources.ts';
import { validateSecurityContext } from './security.ts';
import { validateVolumeDevices, validateVolumeMounts } from './volumes.ts';

/** What containers are checked against. */
export interface ContainerContext {
  readonly spec: PodSpec;
  readonly volumes: ReadonlySet<string>;
  readonly claims: ReadonlySet<string>;
  readonly graceSeconds: number;
}

const PULL_POLICIES = ['Always', 'IfNotPresent', 'Never'];
const MESSAGE_POLICIES = ['FallbackToLogsOnError', 'File'];
const RESTART_POLICIES = ['Always', 'Never', 'OnFailure'];

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
    errors.push(...validateOneOf(restartPolicyOf(container), RESTART_POLICIES, `${at}.restartPolicy`, false));
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
    const policy = restartPolicyOf(container);
    errors.push(...validateOneOf(policy, RESTART_POLICIES, `${at}.restartPolicy`, false));
    if (policy === 'Always') {
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

/** Fields an ephemeral container may not have. */
const NOT_FOR_EPHEMERAL = [
  'ports',
  'livenessProbe',
  'readinessProbe',
  'startupProbe',
  'lifecycle',
  'restartPolicy',
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
    for (const field of NOT_FOR_EPHEMERAL) {
      if (container[field] !== undefined) {
        errors.push(fieldError.forbidden(`${at}.${field}`, 'cannot be set for an Ephemeral Container'));
      }
    }
    if (Object.keys(container.resources ?? {}).length > 0) {
      errors.push(fieldError.forbidden(`${at}.resources`, 'cannot be set for an Ephemeral Container'));
    }
    if (isSet(container.targetContainerName) && !targets.has(container.targetContainerName)) {
      errors.push(fieldError.notFound(`${at}.targetContainerName`, container.targetContainerName));
    }
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
  else if (image.trim() !== image) {
    errors.push(fieldError.invalid(`${at}.image`, image, 'must not have leading or trailing whitespace'));
  }
  errors.push(
    ...validateOneOf(container.terminationMessagePolicy, MESSAGE_POLICIES, `${at}.terminationMessagePolicy`),
    ...validatePorts(container.ports, context.spec.hostNetwork === true, `${at}.ports`),
    ...validateEnv(container.env, `${at}.env`),
    ...validateEnvFrom(container.envFrom, `${at}.envFrom`),
    ...validateVolumeMounts(
      container.volumeMounts,
      context.volumes,
      `${at}.volumeMounts`,
      container.securityContext?.privileged === true,
    ),
    ...validateVolumeDevices(container.volumeDevices, context.volumes, `${at}.volumeDevices`),
    ...validateOneOf(container.imagePullPolicy, PULL_POLICIES, `${at}.imagePullPolicy`),
    ...validateResources(container.resources, `${at}.resources`, context.claims),
    ...validateResizePolicy(container, `${at}.resizePolicy`),
    ...validateSecurityContext(container.securityContext, `${at}.securityContext`, context.spec.hostUsers !== false),
  );
  return errors;
}

function validateProbes(container: Container, at: string, { graceSeconds }: ContainerContext): FieldError[] {
  return (['livenessProbe', 'readinessProbe', 'startupProbe'] as const).flatMap((kind) =>
    validateProbe(container[kind], kind, `${at}.${kind}`, graceSeconds),
  );
}

function validatePorts(ports: readonly ContainerPort[] | undefined, hostNetwork: boolean, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set<string>();
  (ports ?? []).forEach((port, index) => {
    const at = `${path}[${index}]`;
    if (isSet(port.name)) {
      errors.push(...validateNameRule(port.name, portNameErrors, `${at}.name`));
      if (names.has(port.name)) errors.push(fieldError.duplicate(`${at}.name`, port.name));
      names.add(port.name);
    }
    if ((port.containerPort ?? 0) === 0) errors.push(fieldError.required(`${at}.containerPort`));
    else errors.push(...validatePortNumber(port.containerPort, `${at}.containerPort`));
    if ((port.hostPort ?? 0) !== 0) {
      errors.push(...validatePortNumber(port.hostPort, `${at}.hostPort`));
      if (hostNetwork && port.hostPort !== port.containerPort) {
        errors.push(
          fieldError.invalid(`${at}.hostPort`, port.hostPort, 'must match `containerPort` when `hostNetwork` is true'),
        );
      }
    }
    if (isSet(port.hostIP)) errors.push(...validateIp(port.hostIP, `${at}.hostIP`));
    errors.push(...validateOneOf(port.protocol, ['SCTP', 'TCP', 'UDP'], `${at}.protocol`));
  });
  return errors;
}

function validateHostPorts(containers: readonly Container[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  const taken = new Set<string>();
  containers.forEach((container, index) => {
    (container.ports ?? []).forEach((port, portIndex) => {
      if ((port.hostPort ?? 0) === 0) return;
      const key = `${port.protocol}/${port.hostIP ?? ''}/${port.hostPort}`;
      if (taken.has(key)) errors.push(fieldError.duplicate(`${path}[${index}].ports[${portIndex}].hostPort`, key));
      taken.add(key);
    });
  });
  return errors;
}

function validateResizePolicy(container: Container | EphemeralContainer, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const policy of container.resizePolicy ?? []) {
    if (seen.has(policy.resourceName)) errors.push(fieldError.duplicate(path, policy.resourceName));
    seen.add(policy.resourceName);
    errors.push(...validateOneOf(policy.resourceName, ['cpu', 'memory'], path));
    errors.push(...validateOneOf(policy.restartPolicy, ['NotRequired', 'RestartContainer'], path));
  }
  return errors;
}

function restartPolicyOf(container: Container): string | undefined {
  return container.restartPolicy;
}

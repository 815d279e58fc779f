/**
 * Applies the defaults and checks of an SCC to each container. If a container does not set a field, the field of the
 * pod applies. Source: openshift/apiserver-library-go pkg/securitycontextconstraints/{user,capabilities,sccmatching}.
 */
import type { Container, Pod, SecurityContext } from '../../../api/generated/core/v1.ts';
import { type FieldError, fieldError } from '../../../api/meta/field-error.ts';
import { SECCOMP_CONTAINER } from '../../../api/podspec/annotations.ts';
import type { SecurityContextConstraints } from '../kinds/securitycontextconstraints/types.ts';
import { selinuxErrors } from './pod-context.ts';
import { containerProfile, profileErrors, profileField } from './seccomp.ts';

const ALL_CAPABILITIES = '*';

type Capabilities = NonNullable<SecurityContext['capabilities']>;

/** Sets missing fields to the defaults of the SCC. Modifies `container`. */
export function fillContainer(scc: SecurityContextConstraints, pod: Pod, container: Container): void {
  const ofPod = pod.spec?.securityContext ?? {};
  const context: SecurityContext = container.securityContext ?? {};
  const uid = requiredUser(scc);
  if (uid !== undefined && ofPod.runAsUser === undefined) context.runAsUser ??= uid;
  const user = context.runAsUser ?? ofPod.runAsUser;
  if (context.runAsNonRoot === undefined && ofPod.runAsNonRoot === undefined)
    if (user === undefined ? scc.runAsUser?.type === 'MustRunAsNonRoot' : user > 0) context.runAsNonRoot = true;
  const capabilities = filledCapabilities(scc, context.capabilities);
  if (capabilities !== undefined) context.capabilities = capabilities;
  if (scc.readOnlyRootFilesystem === true) context.readOnlyRootFilesystem ??= true;
  const profile = profileField(pod.metadata?.annotations?.[`${SECCOMP_CONTAINER}${container.name}`] ?? '');
  if (profile !== undefined) context.seccompProfile ??= profile;
  // The API rejects allowPrivilegeEscalation=false for containers that are privileged or have CAP_SYS_ADMIN.
  const isPrivileged = context.privileged === true || (context.capabilities?.add ?? []).includes('CAP_SYS_ADMIN');
  const byDefault = scc.defaultAllowPrivilegeEscalation;
  if (byDefault !== undefined && !isPrivileged) context.allowPrivilegeEscalation ??= byDefault;
  if (scc.allowPrivilegeEscalation === false) context.allowPrivilegeEscalation ??= false;
  if (Object.keys(context).length > 0) container.securityContext = context;
}

export function containerErrors(
  scc: SecurityContextConstraints,
  pod: Pod,
  container: Container,
  path: string,
  at: string,
): FieldError[] {
  const context = container.securityContext ?? {};
  const ofPod = pod.spec?.securityContext ?? {};
  const annotation = `${at}.metadata.annotations[${SECCOMP_CONTAINER}${container.name}]`;
  return [
    ...privilegeErrors(scc, context, path),
    ...userErrors(scc, { ...pick(ofPod), ...pick(context) }, path),
    ...selinuxErrors(scc, context.seLinuxOptions ?? ofPod.seLinuxOptions, path),
    ...capabilityErrors(scc, context.capabilities, path),
    ...profileErrors(containerProfile(pod, container), scc.seccompProfiles ?? [], annotation),
    ...portErrors(scc, container, path),
  ];
}

type User = Pick<SecurityContext, 'runAsUser' | 'runAsNonRoot'>;

const pick = ({ runAsUser, runAsNonRoot }: User): User => ({
  ...(runAsUser === undefined ? {} : { runAsUser }),
  ...(runAsNonRoot === undefined ? {} : { runAsNonRoot }),
});

function requiredUser({ runAsUser }: SecurityContextConstraints): number | undefined {
  if (runAsUser?.type === 'MustRunAs') return runAsUser.uid;
  return runAsUser?.type === 'MustRunAsRange' ? runAsUser.uidRangeMin : undefined;
}

function userErrors({ runAsUser: strategy }: SecurityContextConstraints, user: User, path: string): FieldError[] {
  const { runAsUser, runAsNonRoot } = user;
  const at = `${path}.runAsUser`;
  switch (strategy?.type) {
    case 'MustRunAs':
      if (runAsUser === undefined) return [fieldError.required(at)];
      return runAsUser === strategy.uid ? [] : [fieldError.invalid(at, runAsUser, `must be: ${strategy.uid}`)];
    case 'MustRunAsRange': {
      if (runAsUser === undefined) return [fieldError.required(at)];
      const { uidRangeMin: min = 0, uidRangeMax: max = -1 } = strategy;
      if (runAsUser >= min && runAsUser <= max) return [];
      return [fieldError.invalid(at, runAsUser, `must be in the ranges: [${min}, ${max}]`)];
    }
    case 'MustRunAsNonRoot':
      if (runAsNonRoot === undefined && runAsUser === undefined)
        return [fieldError.required(`${path}.runAsNonRoot`, 'must be true')];
      if (runAsNonRoot === false) return [fieldError.invalid(`${path}.runAsNonRoot`, false, 'must be true')];
      return runAsUser === 0 ? [fieldError.invalid(at, 0, 'running with the root UID is forbidden')] : [];
    default:
      return [];
  }
}

function privilegeErrors(scc: SecurityContextConstraints, context: SecurityContext, path: string): FieldError[] {
  const found: FieldError[] = [];
  const refuse = (field: keyof SecurityContext, detail: string): void =>
    void found.push(fieldError.invalid(`${path}.${field}`, context[field] ?? null, detail));
  if (scc.allowPrivilegedContainer !== true && context.privileged === true)
    refuse('privileged', 'Privileged containers are not allowed');
  if (scc.readOnlyRootFilesystem === true && context.readOnlyRootFilesystem !== true)
    refuse('readOnlyRootFilesystem', 'ReadOnlyRootFilesystem must be set to true');
  if (scc.allowPrivilegeEscalation === false && context.allowPrivilegeEscalation !== false)
    refuse('allowPrivilegeEscalation', 'Allowing privilege escalation for containers is not allowed');
  return found;
}

/** Capabilities of a container after the SCC has added and dropped capabilities; undefined if nothing changes. */
function filledCapabilities(scc: SecurityContextConstraints, own: Capabilities | undefined): Capabilities | undefined {
  const [add, drop] = [own?.add ?? [], own?.drop ?? []];
  const adds = new Set([...add, ...(scc.defaultAddCapabilities ?? []).filter((each) => !drop.includes(each))]);
  const drops = new Set([...drop, ...(scc.requiredDropCapabilities ?? [])]);
  if (adds.size === new Set(add).size && drops.size === new Set(drop).size) return undefined;
  return {
    ...(adds.size === 0 ? {} : { add: [...adds].sort() }),
    ...(drops.size === 0 ? {} : { drop: [...drops].sort() }),
  };
}

function capabilityErrors(
  scc: SecurityContextConstraints,
  capabilities: Capabilities | undefined,
  path: string,
): FieldError[] {
  const { allowedCapabilities = [], defaultAddCapabilities = [], requiredDropCapabilities = [] } = scc;
  if (allowedCapabilities.includes(ALL_CAPABILITIES)) return [];
  const { add = [], drop = [] } = capabilities ?? {};
  const allowed = new Set([...allowedCapabilities, ...defaultAddCapabilities]);
  return [
    ...add
      .filter((each) => !allowed.has(each))
      .map((each) => fieldError.invalid(`${path}.capabilities.add`, each, 'capability may not be added')),
    ...requiredDropCapabilities
      .filter((each) => !drop.includes(each))
      .map((each) =>
        fieldError.invalid(`${path}.capabilities.drop`, drop, `${each} is required to be dropped but was not found`),
      ),
  ];
}

function portErrors(scc: SecurityContextConstraints, { ports = [] }: Container, path: string): FieldError[] {
  if (scc.allowHostPorts === true) return [];
  return ports
    .filter(({ hostPort = 0 }) => hostPort > 0)
    .map(({ hostPort }) => fieldError.invalid(`${path}.hostPort`, hostPort, 'Host ports are not allowed to be used'));
}

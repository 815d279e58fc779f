/** Validation of pod specs, pods and pod templates. Source: k8s.io/kubernetes/pkg/apis/core/validation ValidatePodSpec, ValidatePodCreate. */
import type { Pod, PodSpec, PodTemplateSpec } from 'kubernetes-types/core/v1';
import { dns1123LabelErrors, dns1123SubdomainErrors, qualifiedNameErrors } from '../../base/names.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet, validateAnnotations, validateLabels } from '../meta/validation.ts';
import { validateIp, validateNameRule, validateOneOf, validateRange } from '../validation/scalars.ts';
import { validateContainers, validateEphemeralContainers, validateInitContainers } from './containers.ts';
import { validateAffinity, validateTolerations, validateTopologySpread } from './placement.ts';
import { validateResourceQuantity, validateResources } from './resources.ts';
import { validatePodSecurityContext } from './security.ts';
import { validateVolumes } from './volumes.ts';

/** A file the kubelet made into a pod carries its origin in this annotation. */
export const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

const MAX_INT32 = 2 ** 31 - 1;
const DNS_POLICIES = ['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None'];
const MAX_NAMESERVERS = 3;
const MAX_SEARCH_PATHS = 32;
const MAX_SEARCH_CHARACTERS = 2048;

/** A pod as it stands, new or not. */
export function validatePod(pod: Pod): FieldError[] {
  return [...validatePodSpec(pod.spec, 'spec'), ...validatePodAnnotations(pod)];
}

/** What is asked of a pod that is about to be created beyond that. */
export function validatePodCreate(pod: Pod): FieldError[] {
  const errors: FieldError[] = [];
  if ((pod.spec?.ephemeralContainers ?? []).length > 0) {
    errors.push(fieldError.forbidden('spec.ephemeralContainers', 'cannot be set on create'));
  }
  if (isSet(pod.spec?.nodeName) && (pod.spec.schedulingGates ?? []).length > 0) {
    errors.push(fieldError.forbidden('spec.nodeName', 'cannot be set until all schedulingGates have been cleared'));
  }
  return errors;
}

/** Mirror pods name their node; they cannot exist without one. */
function validatePodAnnotations(pod: Pod): FieldError[] {
  const mirror = pod.metadata?.annotations?.[MIRROR_ANNOTATION];
  if (mirror === undefined) return [];
  const path = `metadata.annotations[${MIRROR_ANNOTATION}]`;
  return isSet(pod.spec?.nodeName)
    ? []
    : [fieldError.invalid(path, mirror, 'must set spec.nodeName if mirror pod annotation is set')];
}

/** The template of a workload; its metadata needs no name. */
export function validatePodTemplate(template: PodTemplateSpec | undefined, path: string): FieldError[] {
  const errors = validateLabels(template?.metadata?.labels, `${path}.labels`);
  errors.push(...validateAnnotations(template?.metadata?.annotations, `${path}.annotations`));
  errors.push(...validatePodSpec(template?.spec, `${path}.spec`));
  if ((template?.spec?.ephemeralContainers ?? []).length > 0) {
    errors.push(
      fieldError.forbidden(`${path}.spec.ephemeralContainers`, 'ephemeral containers not allowed in pod template'),
    );
  }
  return errors;
}

export function validatePodSpec(given: PodSpec | undefined, path: string): FieldError[] {
  const spec: PodSpec = given ?? { containers: [] };
  const errors: FieldError[] = [];
  const graceSeconds = spec.terminationGracePeriodSeconds ?? 0;
  if (spec.terminationGracePeriodSeconds === undefined) {
    errors.push(fieldError.required(`${path}.terminationGracePeriodSeconds`));
  }
  const volumes = new Set<string>();
  errors.push(...validateVolumes(spec.volumes, `${path}.volumes`, volumes));
  const claims = new Set<string>();
  errors.push(...validateResourceClaims(spec, `${path}.resourceClaims`, claims));
  const context = { spec, volumes, claims, graceSeconds };
  errors.push(...validateContainers(context, path));
  errors.push(...validateInitContainers(context, path));
  errors.push(...validateEphemeralContainers(context, path));
  const resources = (spec as { resources?: Parameters<typeof validateResources>[0] }).resources;
  errors.push(...validateResources(resources, `${path}.resources`));
  errors.push(...validateOneOf(spec.restartPolicy, ['Always', 'OnFailure', 'Never'], `${path}.restartPolicy`));
  errors.push(...validateDns(spec, path));
  errors.push(...validateLabels(spec.nodeSelector, `${path}.nodeSelector`));
  errors.push(...validatePodSecurityContext(spec, path));
  errors.push(...validateNames(spec, path));
  errors.push(...validateAffinity(spec.affinity, `${path}.affinity`));
  errors.push(...validateTolerations(spec.tolerations, `${path}.tolerations`));
  errors.push(...validateTopologySpread(spec.topologySpreadConstraints, `${path}.topologySpreadConstraints`));
  errors.push(...validateHostAliases(spec, path));
  errors.push(...validateGates(spec, path));
  if (spec.activeDeadlineSeconds !== undefined) {
    errors.push(...validateRange(spec.activeDeadlineSeconds, 1, MAX_INT32, `${path}.activeDeadlineSeconds`));
  }
  for (const [name, text] of Object.entries(spec.overhead ?? {})) {
    errors.push(...validateResourceQuantity(name, text, `${path}.overhead[${name}]`));
  }
  if (spec.preemptionPolicy !== undefined) {
    errors.push(...validateOneOf(spec.preemptionPolicy, ['PreemptLowerPriority', 'Never'], `${path}.preemptionPolicy`));
  }
  errors.push(...validateOperatingSystem(spec, path));
  return errors;
}

function validateNames(spec: PodSpec, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const check = (value: string | undefined, rule: (value: string) => string[], field: string): void => {
    if (isSet(value)) errors.push(...validateNameRule(value, rule, `${path}.${field}`));
  };
  check(spec.serviceAccountName, dns1123SubdomainErrors, 'serviceAccountName');
  check(spec.nodeName, dns1123SubdomainErrors, 'nodeName');
  check(spec.hostname, dns1123LabelErrors, 'hostname');
  check(spec.subdomain, dns1123LabelErrors, 'subdomain');
  check(spec.priorityClassName, dns1123SubdomainErrors, 'priorityClassName');
  check(spec.runtimeClassName, dns1123SubdomainErrors, 'runtimeClassName');
  return errors;
}

function validateResourceClaims(spec: PodSpec, path: string, names: Set<string>): FieldError[] {
  const errors: FieldError[] = [];
  (spec.resourceClaims ?? []).forEach((claim, index) => {
    const at = `${path}[${index}]`;
    if (!isSet(claim.name)) errors.push(fieldError.required(`${at}.name`));
    else if (names.has(claim.name)) errors.push(fieldError.duplicate(`${at}.name`, claim.name));
    else errors.push(...validateNameRule(claim.name, dns1123LabelErrors, `${at}.name`));
    names.add(claim.name);
  });
  return errors;
}

function validateDns(spec: PodSpec, path: string): FieldError[] {
  const errors = validateOneOf(spec.dnsPolicy, DNS_POLICIES, `${path}.dnsPolicy`);
  const config = spec.dnsConfig;
  const at = `${path}.dnsConfig`;
  const servers = config?.nameservers ?? [];
  if (spec.dnsPolicy === 'None') {
    if (config === undefined) {
      return [...errors, fieldError.required(at, 'must provide `dnsConfig` when `dnsPolicy` is None')];
    }
    if (servers.length === 0) {
      errors.push(
        fieldError.required(`${at}.nameservers`, 'must provide at least one DNS nameserver when `dnsPolicy` is None'),
      );
    }
  }
  if (config === undefined) return errors;
  if (servers.length > MAX_NAMESERVERS) {
    errors.push(
      fieldError.invalid(`${at}.nameservers`, servers, `must not have more than ${MAX_NAMESERVERS} nameservers`),
    );
  }
  servers.forEach((server, index) => {
    errors.push(...validateIp(server, `${at}.nameservers[${index}]`));
  });
  const searches = config.searches ?? [];
  if (searches.length > MAX_SEARCH_PATHS) {
    errors.push(
      fieldError.invalid(`${at}.searches`, searches, `must not have more than ${MAX_SEARCH_PATHS} search paths`),
    );
  }
  if (searches.join(' ').length > MAX_SEARCH_CHARACTERS) {
    errors.push(
      fieldError.invalid(
        `${at}.searches`,
        searches,
        `must not have more than ${MAX_SEARCH_CHARACTERS} characters (including spaces) in the search list`,
      ),
    );
  }
  searches.forEach((search, index) => {
    const bare = search === '.' ? '' : search.replace(/\.$/, '').replaceAll('_', '-');
    if (bare !== '') errors.push(...validateNameRule(bare, dns1123SubdomainErrors, `${at}.searches[${index}]`));
  });
  (config.options ?? []).forEach((option, index) => {
    if (!isSet(option.name)) errors.push(fieldError.required(`${at}.options[${index}]`, 'must not be empty'));
  });
  return errors;
}

function validateHostAliases(spec: PodSpec, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const alias of spec.hostAliases ?? []) {
    errors.push(...validateIp(alias.ip ?? '', `${path}.hostAliases.ip`));
    for (const hostname of alias.hostnames ?? []) {
      errors.push(...validateNameRule(hostname, dns1123SubdomainErrors, `${path}.hostAliases.hostnames`));
    }
  }
  return errors;
}

function validateGates(spec: PodSpec, path: string): FieldError[] {
  const errors: FieldError[] = [];
  (spec.readinessGates ?? []).forEach((gate, index) => {
    errors.push(
      ...validateNameRule(
        gate.conditionType ?? '',
        qualifiedNameErrors,
        `${path}.readinessGates[${index}].conditionType`,
      ),
    );
  });
  const names = new Set<string>();
  (spec.schedulingGates ?? []).forEach((gate, index) => {
    const at = `${path}.schedulingGates[${index}]`;
    errors.push(...validateNameRule(gate.name ?? '', qualifiedNameErrors, `${at}.name`));
    if (names.has(gate.name)) errors.push(fieldError.duplicate(at, gate.name));
    names.add(gate.name);
  });
  return errors;
}

function validateOperatingSystem(spec: PodSpec, path: string): FieldError[] {
  const os = spec.os;
  if (os === undefined) return [];
  if (!isSet(os.name)) return [fieldError.required(`${path}.os.name`, 'cannot be empty')];
  return validateOneOf(os.name, ['linux', 'windows'], `${path}.os.name`);
}

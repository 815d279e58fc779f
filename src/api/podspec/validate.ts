/**
 * Validation of pod specs, pods and pod templates. Source: k8s.io/kubernetes/pkg/apis/core/validation ValidatePodSpec,
 * ValidatePodCreate.
 */

import {
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  qualifiedNameErrors,
  searchDomainErrors,
} from '../../base/names.ts';
import type { Pod, PodSpec, PodTemplateSpec, Volume } from '../generated/core/v1.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet, validateAnnotations, validateLabels } from '../meta/validation.ts';
import { validateIp, validateNameRule, validateOneOf, validateRange } from '../validation/scalars.ts';
import { validateDeletionCost, validateProfilesMatch, validateSpecialAnnotations } from './annotations.ts';
import { validateHostProcesses, validateOperatingSystem } from './checks/operating-system.ts';
import {
  validateContainers,
  validateEphemeralContainers,
  validateHostNetworkPorts,
  validateInitContainers,
} from './containers/containers.ts';
import { validateResources } from './containers/resources.ts';
import { validateHostUsers, validatePodSecurityContext } from './containers/security.ts';
import { validateAffinity, validateTolerations, validateTopologySpread } from './placement.ts';
import { validatePodResources } from './pod-resources.ts';
import { type PodContext, validateVolumes } from './volumes.ts';

const MAX_INT32 = 2 ** 31 - 1;
const DNS_POLICIES = ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'];
const ANNOTATIONS = 'metadata.annotations';
const MAX_NAMESERVERS = 3;
const MAX_SEARCH_PATHS = 32;
const MAX_SEARCH_CHARACTERS = 2048;

/** Validates a pod by the rules for new and stored pods. */
export function validatePod(pod: Pod): FieldError[] {
  const { spec } = pod;
  const errors = validateSpecialAnnotations(pod.metadata?.annotations, spec, ANNOTATIONS);
  errors.push(...validatePodSpec(spec, 'spec', { isPod: true, podName: pod.metadata?.name ?? '' }));
  if (isSet(spec?.serviceAccountName)) return errors;
  (spec?.volumes ?? []).forEach((volume, index) => {
    (volume.projected?.sources ?? []).forEach((source, position) => {
      if (source.serviceAccountToken === undefined) return;
      const at = `spec.volumes[${index}].projected.sources[${position}].serviceAccountToken`;
      errors.push(fieldError.forbidden(at, 'must not be specified when serviceAccountName is not set'));
    });
  });
  return errors;
}

/** Validates a pod by the additional rules for new pods. */
export function validatePodCreate(pod: Pod): FieldError[] {
  const errors = validateDeletionCost(pod.metadata?.annotations, ANNOTATIONS);
  if ((pod.spec?.ephemeralContainers ?? []).length > 0) {
    errors.push(fieldError.forbidden('spec.ephemeralContainers', 'cannot be set on create'));
  }
  if (isSet(pod.spec?.nodeName) && (pod.spec.schedulingGates ?? []).length > 0) {
    errors.push(fieldError.forbidden('spec.nodeName', 'cannot be set until all schedulingGates have been cleared'));
  }
  errors.push(...validateProfilesMatch(pod.metadata, pod.spec, 'spec'));
  return errors;
}

/** Validates the pod template of a workload. Its metadata needs no name. */
export function validatePodTemplate(template: PodTemplateSpec | undefined, path: string): FieldError[] {
  const errors = validateLabels(template?.metadata?.labels, `${path}.labels`);
  errors.push(...validateAnnotations(template?.metadata?.annotations, `${path}.annotations`));
  errors.push(...validateSpecialAnnotations(template?.metadata?.annotations, template?.spec, `${path}.annotations`));
  errors.push(...validateDeletionCost(template?.metadata?.annotations, `${path}.annotations`));
  errors.push(...validatePodSpec(template?.spec, `${path}.spec`, { isPod: false, podName: '' }));
  errors.push(...validateProfilesMatch(template?.metadata, template?.spec, `${path}.spec`));
  if ((template?.spec?.ephemeralContainers ?? []).length > 0) {
    errors.push(
      fieldError.forbidden(`${path}.spec.ephemeralContainers`, 'ephemeral containers not allowed in pod template'),
    );
  }
  return errors;
}

export function validatePodSpec(given: PodSpec | undefined, path: string, about: PodContext): FieldError[] {
  const spec: PodSpec = given ?? { containers: [] };
  const errors: FieldError[] = [];
  const graceSeconds = spec.terminationGracePeriodSeconds;
  if (graceSeconds === undefined) errors.push(fieldError.required(`${path}.terminationGracePeriodSeconds`));
  const volumes = new Map<string, Volume>();
  errors.push(...validateVolumes(spec.volumes, `${path}.volumes`, about, volumes));
  const claims = new Set((spec.resourceClaims ?? []).map((claim) => claim.name).filter(isSet));
  errors.push(...validateResourceClaims(spec, `${path}.resourceClaims`));
  const context = { spec, volumes, claims, graceSeconds, isPod: about.isPod };
  errors.push(
    ...validateContainers(context, path),
    ...validateInitContainers(context, path),
    ...validateEphemeralContainers(context, path),
    ...validatePodResources(spec, `${path}.resources`),
    ...validateHostNetworkPorts(context, path),
    ...validateOneOf(spec.restartPolicy, ['Always', 'OnFailure', 'Never'], `${path}.restartPolicy`),
    ...validateOneOf(spec.dnsPolicy, DNS_POLICIES, `${path}.dnsPolicy`),
    ...validateLabels(spec.nodeSelector, `${path}.nodeSelector`),
    ...validatePodSecurityContext(spec, path),
    ...validateAffinity(spec.affinity, `${path}.affinity`),
    ...validateDnsConfig(spec, `${path}.dnsConfig`),
    ...validateGates(spec, path),
    ...validateTopologySpread(spec.topologySpreadConstraints, `${path}.topologySpreadConstraints`),
    ...validateHostProcesses(spec, path),
    ...validateHostUsers(spec, path),
    ...validateNames(spec, path),
    ...validateHostnameOverride(spec, `${path}.hostnameOverride`),
    ...validateRange(spec.activeDeadlineSeconds, 1, MAX_INT32, `${path}.activeDeadlineSeconds`),
    ...validateTolerations(spec.tolerations, `${path}.tolerations`),
    ...validateHostAliases(spec, `${path}.hostAliases`),
  );
  if (spec.preemptionPolicy !== undefined) {
    errors.push(...validateOneOf(spec.preemptionPolicy, ['PreemptLowerPriority', 'Never'], `${path}.preemptionPolicy`));
  }
  if (spec.overhead !== undefined) errors.push(...validateResources({ limits: spec.overhead }, `${path}.overhead`));
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
  // An empty name is reported, because it is set but cannot name a runtime class.
  if (spec.runtimeClassName !== undefined) {
    errors.push(...validateNameRule(spec.runtimeClassName, dns1123SubdomainErrors, `${path}.runtimeClassName`));
  }
  return errors;
}

const MAX_HOSTNAME = 64;

function validateHostnameOverride(spec: PodSpec & { readonly hostnameOverride?: string }, path: string): FieldError[] {
  const { hostnameOverride } = spec;
  if (hostnameOverride === undefined) return [];
  const errors: FieldError[] = [];
  if (spec.setHostnameAsFQDN === true)
    errors.push(fieldError.forbidden(path, 'may not be specified when setHostnameAsFQDN is true'));
  if (spec.hostNetwork === true)
    errors.push(fieldError.forbidden(path, 'may not be specified when hostNetwork is true'));
  if (hostnameOverride.length > MAX_HOSTNAME) errors.push(fieldError.tooLong(path, MAX_HOSTNAME));
  errors.push(...validateNameRule(hostnameOverride, dns1123SubdomainErrors, path));
  return errors;
}

const CLAIM_SOURCES = ['resourceClaimName', 'resourceClaimTemplateName'] as const;

function validateResourceClaims(spec: PodSpec, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set<string>();
  (spec.resourceClaims ?? []).forEach((claim, index) => {
    const at = `${path}[${index}]`;
    if (!isSet(claim.name)) errors.push(fieldError.required(`${at}.name`));
    else if (names.has(claim.name)) errors.push(fieldError.duplicate(`${at}.name`, claim.name));
    else errors.push(...validateNameRule(claim.name, dns1123LabelErrors, `${at}.name`));
    names.add(claim.name);
    const sources = CLAIM_SOURCES.filter((field) => claim[field] !== undefined);
    if (sources.length > 1) {
      const why = 'at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified';
      errors.push(fieldError.invalid(at, claim, why));
    } else if (sources.length === 0) {
      const why = 'must specify one of: `resourceClaimName`, `resourceClaimTemplateName`';
      errors.push(fieldError.invalid(at, claim, why));
    }
    for (const field of sources) {
      errors.push(...validateNameRule(claim[field] ?? '', dns1123SubdomainErrors, `${at}.${field}`));
    }
  });
  return errors;
}

function validateDnsConfig(spec: PodSpec, at: string): FieldError[] {
  const config = spec.dnsConfig;
  const errors: FieldError[] = [];
  const servers = config?.nameservers ?? [];
  if (spec.dnsPolicy === 'None') {
    if (config === undefined) {
      return [fieldError.required(at, 'must provide `dnsConfig` when `dnsPolicy` is None')];
    }
    if (servers.length === 0) {
      return [
        fieldError.required(`${at}.nameservers`, 'must provide at least one DNS nameserver when `dnsPolicy` is None'),
      ];
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
    if (search === '.') return;
    errors.push(...validateNameRule(search.replace(/\.$/, ''), searchDomainErrors, `${at}.searches[${index}]`));
  });
  (config.options ?? []).forEach((option, index) => {
    if (!isSet(option.name)) errors.push(fieldError.required(`${at}.options[${index}]`, 'must not be empty'));
  });
  return errors;
}

function validateHostAliases(spec: PodSpec, path: string): FieldError[] {
  const errors: FieldError[] = [];
  (spec.hostAliases ?? []).forEach((alias, index) => {
    errors.push(...validateIp(alias.ip ?? '', `${path}[${index}].ip`));
    (alias.hostnames ?? []).forEach((hostname, position) => {
      const at = `${path}[${index}].hostnames[${position}]`;
      errors.push(...validateNameRule(hostname, dns1123SubdomainErrors, at));
    });
  });
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
    errors.push(...validateNameRule(gate.name ?? '', qualifiedNameErrors, at));
    if (names.has(gate.name)) errors.push(fieldError.duplicate(at, gate.name));
    names.add(gate.name);
  });
  return errors;
}

/**
 * Validation of services. Source: k8s.io/kubernetes/pkg/apis/core/validation ValidateService, ValidateServiceUpdate.
 */

import { ipFamilyOf } from '../../../../base/addresses/addresses.ts';
import { dns1123LabelErrors, dns1123SubdomainErrors, qualifiedNameErrors } from '../../../../base/names.ts';
import type { Service, ServicePort, ServiceSpec } from '../../../generated/core/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet, validateLabels } from '../../../meta/validation.ts';
import {
  validateAppProtocol,
  validateCidr,
  validateIp,
  validateNameRule,
  validateOneOf,
  validateOptionalOneOf,
  validatePortNumber,
  validatePortNumberOrName,
} from '../../../validation/scalars.ts';
import { validateEndpointIp } from '../endpointslices/addresses.ts';
import { isExternallyAccessible, needsClusterIp, needsHealthCheckPort } from './defaults.ts';

const TYPES = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'];
const MAX_AFFINITY_SECONDS = 86400;

export function validateService(service: Service): FieldError[] {
  const spec: ServiceSpec = service.spec ?? {};
  const errors = validateTopologyAnnotations(service);
  const headless = isHeadless(spec);
  if ((spec.ports ?? []).length === 0 && !headless && spec.type !== 'ExternalName') {
    errors.push(fieldError.required('spec.ports'));
  }
  if (spec.type === 'LoadBalancer' && headless) {
    errors.push(fieldError.invalid('spec.clusterIPs[0]', 'None', "may not be set to 'None' for LoadBalancer services"));
  }
  if (spec.type === 'NodePort' && headless) {
    errors.push(fieldError.invalid('spec.clusterIPs[0]', 'None', "may not be set to 'None' for NodePort services"));
  }
  if (spec.type === 'ExternalName') errors.push(...validateExternalName(spec));
  errors.push(...validateOneOf(spec.type, TYPES, 'spec.type'));
  errors.push(...validatePorts(spec));
  errors.push(...validateLabels(spec.selector, 'spec.selector'));
  errors.push(...validateAffinity(spec));
  errors.push(...validateClusterIps(spec));
  (spec.externalIPs ?? []).forEach((ip, index) => {
    errors.push(...validateEndpointIp(ip, `spec.externalIPs[${index}]`));
  });
  errors.push(...validateSourceRanges(service), ...validateLoadBalancerClass(spec));
  errors.push(...validateTrafficPolicies(spec));
  return errors;
}

const isHeadless = (spec: ServiceSpec): boolean => spec.clusterIP === 'None';
const HINTS = 'service.kubernetes.io/topology-aware-hints';
const MODE = 'service.kubernetes.io/topology-mode';
const SOURCE_RANGES = 'service.beta.kubernetes.io/load-balancer-source-ranges';
const ONLY_LOAD_BALANCER = "may only be used when `type` is 'LoadBalancer'";

/** The two annotations are names for the same setting and must be equal. */
function validateTopologyAnnotations(service: Service): FieldError[] {
  const { [HINTS]: hints, [MODE]: mode } = service.metadata?.annotations ?? {};
  if (hints === undefined || mode === undefined || hints === mode) return [];
  const why = `must match annotations[${HINTS}] when both are specified`;
  return [fieldError.invalid(`metadata.annotations[${MODE}]`, mode, why)];
}

/** Validates the client ranges of a load balancer, in the field or in the annotation that preceded it. */
function validateSourceRanges(service: Service): FieldError[] {
  const spec: ServiceSpec = service.spec ?? {};
  const ranges = spec.loadBalancerSourceRanges ?? [];
  const annotation = service.metadata?.annotations?.[SOURCE_RANGES];
  const inField = ranges.length > 0;
  if (!inField && annotation === undefined) return [];
  const path = inField ? 'spec.LoadBalancerSourceRanges' : `metadata.annotations[${SOURCE_RANGES}]`;
  const errors = spec.type === 'LoadBalancer' ? [] : [fieldError.forbidden(path, ONLY_LOAD_BALANCER)];
  const listed = annotation?.trim() ?? '';
  const annotated = inField || listed === '' ? [] : listed.split(',');
  return [
    ...errors,
    ...ranges.flatMap((range, index) => validateCidr(range.trim(), `${path}[${index}]`)),
    ...annotated.flatMap((range) => validateCidr(range.trim(), path)),
  ];
}

function validateLoadBalancerClass({ type, loadBalancerClass }: ServiceSpec): FieldError[] {
  if (loadBalancerClass === undefined) return [];
  const path = 'spec.loadBalancerClass';
  return type === 'LoadBalancer'
    ? validateNameRule(loadBalancerClass, qualifiedNameErrors, path)
    : [fieldError.forbidden(path, ONLY_LOAD_BALANCER)];
}

function validateExternalName(spec: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  if ((spec.clusterIPs ?? []).length > 0) {
    errors.push(fieldError.forbidden('spec.clusterIPs', 'may not be set for ExternalName services'));
  }
  if ((spec.ipFamilies ?? []).length > 0) {
    errors.push(fieldError.forbidden('spec.ipFamilies', 'may not be set for ExternalName services'));
  }
  if (spec.ipFamilyPolicy !== undefined) {
    errors.push(fieldError.forbidden('spec.ipFamilyPolicy', 'may not be set for ExternalName services'));
  }
  const name = (spec.externalName ?? '').replace(/\.$/, '');
  if (name === '') errors.push(fieldError.required('spec.externalName'));
  else errors.push(...validateNameRule(name, dns1123SubdomainErrors, 'spec.externalName'));
  return errors;
}

function validatePorts(spec: ServiceSpec): FieldError[] {
  const ports = spec.ports ?? [];
  const errors: FieldError[] = [];
  const names = new Set<string>();
  const numbers = new Set<string>();
  const nodePorts = new Set<string>();
  ports.forEach((port, index) => {
    const at = `spec.ports[${index}]`;
    errors.push(...validatePort(port, at, ports.length > 1, names));
    const number = `${port.protocol}/${port.port}`;
    if (numbers.has(number)) {
      errors.push(fieldError.duplicate(at, { port: port.port, protocol: port.protocol }));
    }
    numbers.add(number);
    if ((port.nodePort ?? 0) === 0) return;
    if (spec.type === 'ClusterIP') {
      errors.push(fieldError.forbidden(`${at}.nodePort`, "may not be used when `type` is 'ClusterIP'"));
    }
    const nodePort = `${port.protocol}/${port.nodePort}`;
    if (nodePorts.has(nodePort)) errors.push(fieldError.duplicate(`${at}.nodePort`, port.nodePort));
    nodePorts.add(nodePort);
  });
  return errors;
}

function validatePort(port: ServicePort, at: string, requireName: boolean, names: Set<string>): FieldError[] {
  const errors: FieldError[] = [];
  if (!isSet(port.name)) {
    if (requireName) errors.push(fieldError.required(`${at}.name`));
  } else {
    errors.push(...validateNameRule(port.name, dns1123LabelErrors, `${at}.name`));
    if (names.has(port.name)) errors.push(fieldError.duplicate(`${at}.name`, port.name));
    names.add(port.name);
  }
  errors.push(...validatePortNumber(port.port, `${at}.port`));
  errors.push(...validateOneOf(port.protocol, ['SCTP', 'TCP', 'UDP'], `${at}.protocol`));
  errors.push(...validatePortNumberOrName(port.targetPort, `${at}.targetPort`));
  errors.push(...validateAppProtocol(port.appProtocol, `${at}.appProtocol`));
  return errors;
}

function validateAffinity(spec: ServiceSpec): FieldError[] {
  const errors = validateOneOf(spec.sessionAffinity, ['ClientIP', 'None'], 'spec.sessionAffinity');
  const path = 'spec.sessionAffinityConfig';
  if (spec.sessionAffinity === 'ClientIP') {
    const config = spec.sessionAffinityConfig;
    const seconds = config?.clientIP?.timeoutSeconds;
    if (seconds === undefined) {
      const missing =
        config === undefined ? '' : config.clientIP === undefined ? '.clientIP' : '.clientIP.timeoutSeconds';
      errors.push(fieldError.required(`${path}${missing}`, 'when session affinity type is ClientIP'));
    } else if (seconds <= 0 || seconds > MAX_AFFINITY_SECONDS) {
      errors.push(
        fieldError.invalid(
          `${path}.clientIP.timeoutSeconds`,
          seconds,
          `must be greater than 0 and less than ${MAX_AFFINITY_SECONDS}`,
        ),
      );
    }
  } else if (spec.sessionAffinity === 'None' && spec.sessionAffinityConfig !== undefined) {
    errors.push(fieldError.forbidden(path, 'must not be set when session affinity is None'));
  }
  return errors;
}

const FAMILY_POLICIES = ['PreferDualStack', 'RequireDualStack', 'SingleStack'];

/** Validates clusterIPs, ipFamilies and ipFamilyPolicy. */
function validateClusterIps(spec: ServiceSpec): FieldError[] {
  // ExternalName services have no cluster addresses; their fields are validated elsewhere.
  if (spec.type === 'ExternalName') return [];
  const path = 'spec.clusterIPs';
  const errors: FieldError[] = [];
  const ips = spec.clusterIPs ?? [];
  const wrong = (why: string): void => {
    errors.push(fieldError.invalid(path, ips, why));
  };
  if (isSet(spec.clusterIP)) {
    if (ips.length === 0) errors.push(fieldError.required(path));
    else if (ips[0] !== spec.clusterIP) wrong('first value must match `clusterIP`');
  } else if (ips.length > 0) wrong('must be empty when `clusterIP` is not specified');
  const families = spec.ipFamilies ?? [];
  const seen = new Set<string>();
  families.forEach((family, index) => {
    const at = `spec.ipFamilies[${index}]`;
    if (family !== 'IPv4' && family !== 'IPv6') errors.push(fieldError.notSupported(at, family, ['IPv4', 'IPv6']));
    if (seen.has(family)) errors.push(fieldError.duplicate(at, family));
    seen.add(family);
  });
  errors.push(...validateOptionalOneOf(spec.ipFamilyPolicy, FAMILY_POLICIES, 'spec.ipFamilyPolicy'));
  let unreadable = false;
  ips.forEach((ip, index) => {
    if (index === 0 && ip === 'None') {
      if (ips.length > 1) wrong("'None' must be the first and only value");
      unreadable ||= ips.length > 1;
      return;
    }
    const found = validateIp(ip, `${path}[${index}]`);
    unreadable ||= found.length > 0;
    errors.push(...found);
  });
  if (ips.length > 2) wrong('may only hold up to 2 values');
  if (unreadable) return errors;
  if (ips.length > 1 && new Set(ips.map(ipFamilyOf)).size !== ips.length) {
    wrong('may specify no more than one IP for each IP family');
  }
  if (isHeadless(spec)) return errors;
  ips.slice(0, families.length).forEach((ip, index) => {
    const family = families[index];
    if ((family !== 'IPv4' && family !== 'IPv6') || `IPv${ipFamilyOf(ip)}` === family) return;
    const why = `expected an ${family} value as indicated by \`ipFamilies[${index}]\``;
    errors.push(fieldError.invalid(`${path}[${index}]`, ip, why));
  });
  return errors;
}

const DISTRIBUTIONS = ['PreferClose', 'PreferSameZone', 'PreferSameNode'];

function validateTrafficPolicies(spec: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  const external = spec.externalTrafficPolicy;
  if (isExternallyAccessible(spec)) {
    errors.push(...validateOneOf(external, ['Cluster', 'Local'], 'spec.externalTrafficPolicy'));
  } else if (isSet(external)) {
    errors.push(
      fieldError.invalid('spec.externalTrafficPolicy', external, 'may only be set for externally-accessible services'),
    );
  }
  if ((spec.healthCheckNodePort ?? 0) !== 0) {
    const path = 'spec.healthCheckNodePort';
    if (spec.type === 'LoadBalancer' && external === 'Local') {
      errors.push(...validatePortNumber(spec.healthCheckNodePort, path));
    } else {
      const why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
      errors.push(fieldError.invalid(path, spec.healthCheckNodePort, why));
    }
  }
  if (spec.type === 'LoadBalancer') {
    // Upstream uses this path without the prefix `spec.`.
    if (spec.allocateLoadBalancerNodePorts === undefined) {
      errors.push(fieldError.required('allocateLoadBalancerNodePorts'));
    }
  } else if (spec.allocateLoadBalancerNodePorts !== undefined) {
    errors.push(fieldError.forbidden('spec.allocateLoadBalancerNodePorts', ONLY_LOAD_BALANCER));
  }
  const internal = spec.internalTrafficPolicy;
  if (internal === undefined && needsClusterIp(spec)) errors.push(fieldError.required('spec.internalTrafficPolicy'));
  errors.push(...validateOptionalOneOf(internal, ['Cluster', 'Local'], 'spec.internalTrafficPolicy'));
  errors.push(...validateOptionalOneOf(spec.trafficDistribution, DISTRIBUTIONS, 'spec.trafficDistribution'));
  return errors;
}

/** Validates the changes of an update. Call it after `validateService`, which validates the new object. */
export function validateServiceUpdate(service: Service, old: Service): FieldError[] {
  const spec: ServiceSpec = service.spec ?? {};
  const before: ServiceSpec = old.spec ?? {};
  const errors: FieldError[] = [];
  if (spec.type !== 'ExternalName' && before.type !== 'ExternalName') {
    if (!isHeadless(spec) || !isHeadless(before)) errors.push(...validateKeptIps(spec, before));
    if (!isHeadless(spec) && !isHeadless(before)) errors.push(...validateKeptFamilies(spec, before));
  }
  if (
    spec.type === 'LoadBalancer' &&
    before.type === 'LoadBalancer' &&
    spec.loadBalancerClass !== before.loadBalancerClass
  ) {
    errors.push(fieldError.invalid('spec.loadBalancerClass', spec.loadBalancerClass, ONCE));
  }
  if (
    needsHealthCheckPort(spec) &&
    needsHealthCheckPort(before) &&
    (spec.healthCheckNodePort ?? 0) !== (before.healthCheckNodePort ?? 0)
  ) {
    errors.push(fieldError.forbidden('spec.healthCheckNodePort', 'field is immutable'));
  }
  return errors;
}

const ONCE = 'may not change once set';

/** Rejects changes of the primary address. The secondary address may be added or removed. */
function validateKeptIps(spec: ServiceSpec, before: ServiceSpec): FieldError[] {
  const now = spec.clusterIPs ?? [];
  const then = before.clusterIPs ?? [];
  const changed = (index: number): FieldError => fieldError.invalid(`spec.clusterIPs[${index}]`, now, ONCE);
  if (now.length === then.length) return then.flatMap((ip, index) => (ip === now[index] ? [] : [changed(index)]));
  const errors: FieldError[] = [];
  if (now.length === 0) {
    errors.push(fieldError.invalid('spec.clusterIPs[0]', now, 'primary clusterIP can not be unset'));
  } else if (then.length > 0 && now[0] !== then[0]) errors.push(changed(0));
  if (now.length === 1 && then.length > 1 && spec.ipFamilyPolicy !== 'SingleStack') {
    const why = "must be set to 'SingleStack' when releasing the secondary clusterIP";
    errors.push(fieldError.invalid('spec.ipFamilyPolicy', spec.ipFamilyPolicy, why));
  }
  return errors;
}

function validateKeptFamilies(spec: ServiceSpec, before: ServiceSpec): FieldError[] {
  const now = spec.ipFamilies ?? [];
  const then = before.ipFamilies ?? [];
  const at = 'spec.ipFamilies[0]';
  if (now.length === then.length) {
    return then.flatMap((family, index) => (family === now[index] ? [] : [fieldError.invalid(at, now, ONCE)]));
  }
  const errors: FieldError[] = [];
  const released = now.length < then.length;
  if (released && (spec.clusterIPs ?? []).length === 0) {
    errors.push(fieldError.invalid(at, now, 'primary ipFamily can not be unset'));
  }
  if (now.length > 0 && then.length > 0 && now[0] !== then[0]) {
    errors.push(fieldError.invalid(at, spec.clusterIPs ?? [], ONCE));
  }
  if (released && now.length === 1 && spec.ipFamilyPolicy !== 'SingleStack') {
    const why = "must be set to 'SingleStack' when releasing the secondary ipFamily";
    errors.push(fieldError.invalid('spec.ipFamilyPolicy', spec.ipFamilyPolicy, why));
  }
  return errors;
}

/** Validates the ingress points that a load balancer reports. */
export function validateServiceStatus(service: Service): FieldError[] {
  const path = 'status.loadBalancer.ingress';
  const ingress = service.status?.loadBalancer?.ingress ?? [];
  if (ingress.length > 0 && service.spec?.type !== 'LoadBalancer') {
    return [fieldError.forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")];
  }
  return ingress.flatMap(({ ip = '', ipMode, hostname = '' }, index) => {
    const at = `${path}[${index}]`;
    const errors = ip === '' ? [] : validateIp(ip, `${at}.ip`);
    if (ipMode === undefined) {
      if (ip !== '') errors.push(fieldError.required(`${at}.ipMode`, 'must be specified when `ip` is set'));
    } else if (ip === '') {
      errors.push(fieldError.forbidden(`${at}.ipMode`, 'may not be specified when `ip` is not set'));
    } else errors.push(...validateOptionalOneOf(ipMode, ['Proxy', 'VIP'], `${at}.ipMode`));
    if (hostname === '') return errors;
    errors.push(...validateNameRule(hostname, dns1123SubdomainErrors, `${at}.hostname`));
    if (ipFamilyOf(hostname) !== 0) {
      errors.push(fieldError.invalid(`${at}.hostname`, hostname, 'must be a DNS name, not an IP address'));
    }
    return errors;
  });
}

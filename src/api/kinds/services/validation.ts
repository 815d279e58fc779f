/** Source: k8s.io/kubernetes/pkg/apis/core/validation ValidateService, ValidateServiceUpdate. */
import type { Service, ServicePort, ServiceSpec } from 'kubernetes-types/core/v1';
import { ipFamilyOf } from '../../../base/addresses.ts';
import { dns1123LabelErrors, dns1123SubdomainErrors } from '../../../base/names.ts';
import { type FieldError, fieldError } from '../../meta/field-error.ts';
import { isSet, validateLabels } from '../../meta/validation.ts';
import {
  validateAppProtocol,
  validateCidr,
  validateIp,
  validateNameRule,
  validateOneOf,
  validatePortNumber,
  validatePortNumberOrName,
} from '../../validation/scalars.ts';
import { needsClusterIp, needsNodePort } from './defaults.ts';

const TYPES = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'];
const MAX_AFFINITY_SECONDS = 86400;

export function validateService(service: Service): FieldError[] {
  const spec: ServiceSpec = service.spec ?? {};
  const errors: FieldError[] = [];
  const headless = spec.clusterIP === 'None';
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
  errors.push(...validatePorts(spec, headless));
  errors.push(...validateLabels(spec.selector, 'spec.selector'));
  errors.push(...validateAffinity(spec));
  errors.push(...validateClusterIps(spec));
  (spec.externalIPs ?? []).forEach((ip, index) => {
    errors.push(...validateIp(ip, `spec.externalIPs[${index}]`));
  });
  (spec.loadBalancerSourceRanges ?? []).forEach((range, index) => {
    errors.push(...validateCidr(range.trim(), `spec.loadBalancerSourceRanges[${index}]`));
  });
  if ((spec.loadBalancerSourceRanges ?? []).length > 0 && spec.type !== 'LoadBalancer') {
    errors.push(
      fieldError.forbidden('spec.LoadBalancerSourceRanges', "may only be used when `type` is 'LoadBalancer'"),
    );
  }
  errors.push(...validateTrafficPolicies(spec));
  return errors;
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

function validatePorts(spec: ServiceSpec, headless: boolean): FieldError[] {
  const ports = spec.ports ?? [];
  const errors: FieldError[] = [];
  const names = new Set<string>();
  const numbers = new Set<string>();
  const nodePorts = new Set<string>();
  ports.forEach((port, index) => {
    const at = `spec.ports[${index}]`;
    errors.push(...validatePort(port, at, ports.length > 1, headless, names));
    const number = `${port.protocol}/${port.port}`;
    if (numbers.has(number)) {
      errors.push(fieldError.duplicate(at, { port: port.port, protocol: port.protocol }));
    }
    numbers.add(number);
    if ((port.nodePort ?? 0) === 0) return;
    if (!needsNodePort(spec)) {
      errors.push(fieldError.forbidden(`${at}.nodePort`, `may not be used when \`type\` is '${spec.type}'`));
      return;
    }
    const nodePort = `${port.protocol}/${port.nodePort}`;
    if (nodePorts.has(nodePort)) errors.push(fieldError.duplicate(`${at}.nodePort`, port.nodePort));
    nodePorts.add(nodePort);
  });
  return errors;
}

function validatePort(
  port: ServicePort,
  at: string,
  requireName: boolean,
  headless: boolean,
  names: Set<string>,
): FieldError[] {
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
  if (headless && typeof port.targetPort === 'number' && port.targetPort !== port.port && port.nodePort !== undefined) {
    errors.push(fieldError.forbidden(`${at}.nodePort`, 'may not be used with a headless service'));
  }
  return errors;
}

function validateAffinity(spec: ServiceSpec): FieldError[] {
  const errors = validateOneOf(spec.sessionAffinity, ['ClientIP', 'None'], 'spec.sessionAffinity');
  const path = 'spec.sessionAffinityConfig';
  if (spec.sessionAffinity === 'ClientIP') {
    const seconds = spec.sessionAffinityConfig?.clientIP?.timeoutSeconds;
    if (seconds === undefined) {
      errors.push(fieldError.required(path, 'when session affinity type is ClientIP'));
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

function validateClusterIps(spec: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  const ips = spec.clusterIPs ?? [];
  if (isSet(spec.clusterIP) && ips.length > 0 && ips[0] !== spec.clusterIP) {
    errors.push(fieldError.invalid('spec.clusterIPs', ips, 'first value must match `clusterIP`'));
  }
  const all = ips.length > 0 ? ips : isSet(spec.clusterIP) ? [spec.clusterIP] : [];
  all.forEach((ip, index) => {
    const at = `spec.clusterIPs[${index}]`;
    if (ip === 'None') {
      if (index > 0 || all.length > 1) {
        errors.push(fieldError.invalid(at, ip, "'None' must be the first and only value"));
      }
    } else if (ip !== '' && ipFamilyOf(ip) === 0) errors.push(...validateIp(ip, at));
  });
  if (all.length > 2) errors.push(fieldError.invalid('spec.clusterIPs', all, 'may only hold up to 2 values'));
  (spec.ipFamilies ?? []).forEach((family, index) => {
    errors.push(...validateOneOf(family, ['IPv4', 'IPv6'], `spec.ipFamilies[${index}]`));
  });
  errors.push(
    ...validateOneOf(
      spec.ipFamilyPolicy,
      ['SingleStack', 'PreferDualStack', 'RequireDualStack'],
      'spec.ipFamilyPolicy',
      false,
    ),
  );
  return errors;
}

function validateTrafficPolicies(spec: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  const external = spec.externalTrafficPolicy;
  if (needsNodePort(spec) || ((spec.externalIPs ?? []).length > 0 && isSet(external))) {
    errors.push(...validateOneOf(external, ['Cluster', 'Local'], 'spec.externalTrafficPolicy'));
  } else if (isSet(external)) {
    errors.push(
      fieldError.invalid('spec.externalTrafficPolicy', external, 'may only be set for externally-accessible services'),
    );
  }
  if ((spec.healthCheckNodePort ?? 0) !== 0 && !(spec.type === 'LoadBalancer' && external === 'Local')) {
    errors.push(
      fieldError.invalid(
        'spec.healthCheckNodePort',
        spec.healthCheckNodePort,
        "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
      ),
    );
  }
  if (spec.type === 'LoadBalancer') {
    if (spec.allocateLoadBalancerNodePorts === undefined) {
      errors.push(fieldError.required('spec.allocateLoadBalancerNodePorts'));
    }
  } else if (spec.allocateLoadBalancerNodePorts !== undefined) {
    errors.push(
      fieldError.forbidden('spec.allocateLoadBalancerNodePorts', "may only be used when `type` is 'LoadBalancer'"),
    );
  }
  if (needsClusterIp(spec)) {
    errors.push(...validateOneOf(spec.internalTrafficPolicy, ['Cluster', 'Local'], 'spec.internalTrafficPolicy'));
  }
  return errors;
}

export function validateServiceUpdate(service: Service, old: Service): FieldError[] {
  const errors = validateService(service);
  const spec: ServiceSpec = service.spec ?? {};
  const before: ServiceSpec = old.spec ?? {};
  if (
    needsClusterIp(before) &&
    needsClusterIp(spec) &&
    isSet(before.clusterIP) &&
    spec.clusterIP !== before.clusterIP
  ) {
    errors.push(
      isSet(spec.clusterIP)
        ? fieldError.invalid('spec.clusterIPs[0]', spec.clusterIPs ?? [spec.clusterIP], 'may not change once set')
        : fieldError.invalid('spec.clusterIPs[0]', '', 'primary clusterIP can not be unset'),
    );
  }
  if (
    spec.type === 'LoadBalancer' &&
    before.type === 'LoadBalancer' &&
    spec.loadBalancerClass !== before.loadBalancerClass
  ) {
    errors.push(fieldError.invalid('spec.loadBalancerClass', spec.loadBalancerClass, 'may not change once set'));
  }
  return errors;
}

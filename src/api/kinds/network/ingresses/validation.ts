/** Source: k8s.io/kubernetes/pkg/apis/networking/validation ValidateIngress. */

import { ipFamilyOf } from '../../../../base/addresses/addresses.ts';
import {
  dns1035LabelErrors,
  dns1123SubdomainErrors,
  pathSegmentErrors,
  wildcardSubdomainErrors,
} from '../../../../base/names.ts';
import type { HTTPIngressPath, Ingress, IngressBackend, IngressSpec } from '../../../generated/networking/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet } from '../../../meta/validation.ts';
import {
  validateIp,
  validateNameRule,
  validatePortNumber,
  validatePortNumberOrName,
} from '../../../validation/scalars.ts';

/** Annotation that preceded `spec.ingressClassName`. */
export const INGRESS_CLASS_ANNOTATION = 'kubernetes.io/ingress.class';

const BAD_SEQUENCES = ['//', '/./', '/../', '%2f', '%2F'];
const BAD_ENDINGS = ['/..', '/.'];

export function validateIngress(ingress: Ingress): FieldError[] {
  return validateSpec(ingress.spec ?? {});
}

/** Rejects a new ingress that has both the annotation and the field. A stored ingress may have both. */
export function validateNewIngress(ingress: Ingress): FieldError[] {
  const annotation = ingress.metadata?.annotations?.[INGRESS_CLASS_ANNOTATION];
  const name = ingress.spec?.ingressClassName;
  if (annotation === undefined || name === undefined || annotation === name) return [];
  const detail = 'must match `ingressClassName` when both are specified';
  return [fieldError.invalid(`annotations.${INGRESS_CLASS_ANNOTATION}`, annotation, detail)];
}

function validateSpec(spec: IngressSpec): FieldError[] {
  const errors: FieldError[] = [];
  const rules = spec.rules ?? [];
  if (rules.length === 0 && spec.defaultBackend === undefined) {
    errors.push(fieldError.invalid('spec', rules, 'either `defaultBackend` or `rules` must be specified'));
  }
  if (spec.defaultBackend !== undefined) errors.push(...validateBackend(spec.defaultBackend, 'spec.defaultBackend'));
  rules.forEach((rule, index) => {
    const at = `spec.rules[${index}]`;
    if (isSet(rule.host)) {
      if (ipFamilyOf(rule.host) !== 0) {
        errors.push(fieldError.invalid(`${at}.host`, rule.host, 'must be a DNS name, not an IP address'));
      }
      errors.push(...validateHost(rule.host, `${at}.host`));
    }
    if (rule.http === undefined) return;
    const paths = rule.http.paths ?? [];
    if (paths.length === 0) errors.push(fieldError.required(`${at}.http.paths`));
    paths.forEach((path, place) => {
      errors.push(...validatePath(path, `${at}.http.paths[${place}]`));
    });
  });
  (spec.tls ?? []).forEach((tls, index) => {
    (tls.hosts ?? []).forEach((host, place) => {
      errors.push(...validateHost(host, `spec.tls[${index}].hosts[${place}]`));
    });
    if (isSet(tls.secretName)) {
      errors.push(...validateNameRule(tls.secretName, dns1123SubdomainErrors, `spec.tls[${index}].secretName`));
    }
  });
  if (spec.ingressClassName !== undefined) {
    errors.push(...validateNameRule(spec.ingressClassName, dns1123SubdomainErrors, 'spec.ingressClassName'));
  }
  return errors;
}

function validateHost(host: string, path: string): FieldError[] {
  return validateNameRule(host, host.includes('*') ? wildcardSubdomainErrors : dns1123SubdomainErrors, path);
}

function validatePath(given: HTTPIngressPath, at: string): FieldError[] {
  const errors: FieldError[] = [];
  const path = given.path ?? '';
  const wrong = (detail: string): void => {
    errors.push(fieldError.invalid(`${at}.path`, path, detail));
  };
  switch (given.pathType) {
    case undefined:
      return [fieldError.required(`${at}.pathType`, 'pathType must be specified')];
    case 'Exact':
    case 'Prefix':
      if (!path.startsWith('/')) wrong('must be an absolute path');
      for (const sequence of BAD_SEQUENCES) if (path.includes(sequence)) wrong(`must not contain '${sequence}'`);
      for (const ending of BAD_ENDINGS) if (path.endsWith(ending)) wrong(`cannot end with '${ending}'`);
      break;
    case 'ImplementationSpecific':
      if (path !== '' && !path.startsWith('/')) wrong('must be an absolute path');
      break;
    default:
      errors.push(
        fieldError.notSupported(`${at}.pathType`, given.pathType, ['Exact', 'ImplementationSpecific', 'Prefix']),
      );
  }
  return [...errors, ...validateBackend(given.backend ?? {}, `${at}.backend`)];
}

function validateBackend(backend: IngressBackend, path: string): FieldError[] {
  const { resource, service } = backend;
  if (resource !== undefined && service !== undefined) {
    return [fieldError.invalid(path, '', 'cannot set both resource and service backends')];
  }
  if (resource !== undefined) {
    return [
      ...(resource.apiGroup === undefined
        ? []
        : validateNameRule(resource.apiGroup, dns1123SubdomainErrors, `${path}.resource.apiGroup`)),
      ...(['kind', 'name'] as const).flatMap((field) => {
        const at = `${path}.resource.${field}`;
        return isSet(resource[field])
          ? validateNameRule(resource[field], pathSegmentErrors, at)
          : [fieldError.required(at, `${field} is required`)];
      }),
    ];
  }
  if (service === undefined) return [fieldError.invalid(path, '', 'resource or service backend is required')];
  const errors = isSet(service.name)
    ? validateNameRule(service.name, dns1035LabelErrors, `${path}.service.name`)
    : [fieldError.required(`${path}.service.name`)];
  const { name, number } = service.port ?? {};
  const named = isSet(name);
  const numbered = (number ?? 0) !== 0;
  if (named && numbered) errors.push(fieldError.invalid(path, '', 'cannot set both port name & port number'));
  else if (named) errors.push(...validatePortNumberOrName(name, `${path}.service.port.name`));
  else if (numbered) errors.push(...validatePortNumber(number, `${path}.service.port.number`));
  else errors.push(fieldError.required(path, 'port name or number is required'));
  return errors;
}

export function validateIngressStatus(ingress: Ingress): FieldError[] {
  return (ingress.status?.loadBalancer?.ingress ?? []).flatMap((each, index) => {
    const at = `status.loadBalancer.ingress[${index}]`;
    const errors: FieldError[] = [];
    if (isSet(each.ip)) errors.push(...validateIp(each.ip, `${at}.ip`));
    if (isSet(each.hostname)) {
      errors.push(...validateNameRule(each.hostname, dns1123SubdomainErrors, `${at}.hostname`));
      if (ipFamilyOf(each.hostname) !== 0) {
        errors.push(fieldError.invalid(`${at}.hostname`, each.hostname, 'must be a DNS name, not an IP address'));
      }
    }
    return errors;
  });
}

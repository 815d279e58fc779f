/**
 * Validation of routes, except for certificates, which the router checks. Source: openshift/openshift-apiserver
 * pkg/route/apis/route/validation.
 */

import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';
import { isSet } from '../../../../api/meta/validation.ts';
import { dns1123LabelErrors, dns1123SubdomainErrors } from '../../../../base/names.ts';
import type { Route, RouteSpec, RouteTarget, RouteTls } from './types.ts';

const MAX_ALTERNATES = 3;
const MAX_WEIGHT = 256;
const MAX_PORT = 65_535;
const TERMINATIONS = ['edge', 'passthrough', 'reencrypt'];
const INSECURE_POLICIES = ['None', 'Allow', 'Redirect'];
/** Annotation that allows hosts that are not valid DNS names. */
const ALLOW_NON_DNS_HOST = 'route.openshift.io/allow-non-dns-compliant-host';

export function validateRoute(route: Route): FieldError[] {
  const spec = route.spec ?? {};
  const allowsAnyHost = route.metadata?.annotations?.[ALLOW_NON_DNS_HOST] === 'true';
  return [
    ...(isSet(spec.host) ? validateHost(spec.host, allowsAnyHost) : []),
    ...(isSet(spec.subdomain) ? validateSubdomain(spec.subdomain) : []),
    ...validatePath(spec),
    ...validateTargets(spec),
    ...validatePort(spec.port?.targetPort, spec.port !== undefined),
    ...validateWildcard(spec),
    ...(spec.tls === undefined ? [] : validateTls(spec.tls)),
  ];
}

/** Changes of `spec.host` are checked in admission, because they depend on the user's permissions. */
export function validateRouteUpdate(route: Route, old: Route): FieldError[] {
  const policy = route.spec?.wildcardPolicy;
  if (policy === old.spec?.wildcardPolicy) return [];
  return [fieldError.invalid('spec.wildcardPolicy', policy ?? '', 'field is immutable')];
}

function validateHost(host: string, allowsAnyHost: boolean): FieldError[] {
  const errors = dns1123SubdomainErrors(host).map((detail) => fieldError.invalid('spec.host', host, detail));
  if (errors.length > 0 || allowsAnyHost) return errors;
  return host
    .split('.')
    .flatMap((label) => dns1123LabelErrors(label))
    .map((detail) => fieldError.invalid('spec.host', host, detail));
}

function validateSubdomain(subdomain: string): FieldError[] {
  return dns1123SubdomainErrors(subdomain).map((detail) => fieldError.invalid('spec.subdomain', subdomain, detail));
}

function validatePath({ path, tls }: RouteSpec): FieldError[] {
  if (!isSet(path)) return [];
  if (!path.startsWith('/')) return [fieldError.invalid('spec.path', path, 'path must begin with /')];
  if (/[\s#?\\]/.test(path))
    return [fieldError.invalid('spec.path', path, 'cannot contain "#", "?", a backslash or white space')];
  if (tls?.termination === 'passthrough')
    return [fieldError.invalid('spec.path', path, 'passthrough termination does not support paths')];
  return [];
}

function validateTargets({ to = {}, alternateBackends = [] }: RouteSpec): FieldError[] {
  const errors = validateTarget(to, 'spec.to');
  if (alternateBackends.length > MAX_ALTERNATES)
    errors.push(fieldError.tooMany('spec.alternateBackends', alternateBackends.length, MAX_ALTERNATES));
  const names = new Set([to.name]);
  for (const [index, target] of alternateBackends.entries()) {
    const at = `spec.alternateBackends[${index}]`;
    errors.push(...validateTarget(target, at));
    if (isSet(target.name) && names.has(target.name)) errors.push(fieldError.duplicate(`${at}.name`, target.name));
    names.add(target.name);
  }
  return errors;
}

function validateTarget({ kind, name, weight }: RouteTarget, at: string): FieldError[] {
  const errors: FieldError[] = [];
  if (kind !== 'Service') errors.push(fieldError.invalid(`${at}.kind`, kind ?? '', 'must reference a Service'));
  if (!isSet(name)) errors.push(fieldError.required(`${at}.name`));
  if (weight !== undefined && (weight < 0 || weight > MAX_WEIGHT))
    errors.push(fieldError.invalid(`${at}.weight`, weight, `weight must be an integer between 0 and ${MAX_WEIGHT}`));
  return errors;
}

function validatePort(port: number | string | undefined, isGiven: boolean): FieldError[] {
  if (!isGiven) return [];
  if (port === undefined || port === '' || port === 0) return [fieldError.required('spec.port.targetPort')];
  if (typeof port === 'number' && (port < 1 || port > MAX_PORT))
    return [fieldError.invalid('spec.port.targetPort', port, `must be between 1 and ${MAX_PORT}, inclusive`)];
  return [];
}

function validateWildcard({ host, wildcardPolicy }: RouteSpec): FieldError[] {
  if (wildcardPolicy !== 'None' && wildcardPolicy !== 'Subdomain')
    return [fieldError.notSupported('spec.wildcardPolicy', wildcardPolicy ?? '', ['None', 'Subdomain'])];
  if (wildcardPolicy === 'Subdomain' && !isSet(host))
    return [fieldError.invalid('spec.wildcardPolicy', wildcardPolicy, 'host name not specified for wildcard policy')];
  return [];
}

function validateTls(tls: RouteTls): FieldError[] {
  const { termination = '', insecureEdgeTerminationPolicy: insecure = '' } = tls;
  const errors: FieldError[] = [];
  const refuse = (field: keyof RouteTls): void => {
    if (!isSet(tls[field])) return;
    const detail = `${termination} termination does not support certificates`;
    errors.push(fieldError.invalid(`spec.tls.${field}`, 'redacted', detail));
  };
  if (!TERMINATIONS.includes(termination))
    errors.push(fieldError.notSupported('spec.tls.termination', termination, TERMINATIONS));
  if (termination === 'passthrough')
    for (const field of ['certificate', 'key', 'caCertificate', 'destinationCACertificate'] as const) refuse(field);
  if (termination === 'edge') refuse('destinationCACertificate');
  if (insecure === '') return errors;
  const policies =
    termination === 'passthrough' ? INSECURE_POLICIES.filter((each) => each !== 'Allow') : INSECURE_POLICIES;
  if (!policies.includes(insecure)) {
    const detail = `${termination} termination supports only these values: ${policies.join(', ')}`;
    errors.push(fieldError.invalid('spec.tls.insecureEdgeTerminationPolicy', insecure, detail));
  }
  return errors;
}

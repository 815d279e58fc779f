/**
 * Validation of certificate signing requests. Source: k8s.io/kubernetes/pkg/apis/certificates/validation. The ASN.1 of
 * the request is parsed by the API server's admission and by the signer.
 */

import { dns1123SubdomainErrors } from '../../../../base/names.ts';
import type {
  CertificateSigningRequest,
  CertificateSigningRequestCondition,
} from '../../../generated/certificates/v1.ts';
import { semanticEqual } from '../../../meta/equality.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet } from '../../../meta/validation.ts';
import { isBeta } from '../../../registry/versions.ts';
import { decodeBase64 } from '../../../validation/base64.ts';

export const KEY_USAGES: readonly string[] = [
  'any',
  'cert sign',
  'client auth',
  'code signing',
  'content commitment',
  'crl sign',
  'data encipherment',
  'decipher only',
  'digital signature',
  'email protection',
  'encipher only',
  'ipsec end system',
  'ipsec tunnel',
  'ipsec user',
  'key agreement',
  'key encipherment',
  'microsoft sgc',
  'netscape sgc',
  'ocsp signing',
  's/mime',
  'server auth',
  'signing',
  'timestamping',
];

const MIN_SECONDS = 600;
/** Upstream's maximum length of a signer name: a domain, a slash and a path. */
const MAX_SIGNER_NAME = 571;
export const LEGACY_SIGNER = 'kubernetes.io/legacy-unknown';

export function validateRequest(request: CertificateSigningRequest): FieldError[] {
  const spec = request.spec;
  const errors = validatePem(spec?.request, 'CERTIFICATE REQUEST', 'spec.request');
  const usages = spec?.usages ?? [];
  if (usages.length === 0) errors.push(fieldError.required('spec.usages', 'usages must be set'));
  const seen = new Set<string>();
  usages.forEach((usage, index) => {
    const at = `spec.usages[${index}]`;
    if (!KEY_USAGES.includes(usage)) errors.push(fieldError.notSupported(at, usage, KEY_USAGES));
    if (seen.has(usage)) errors.push(fieldError.duplicate(at, usage));
    seen.add(usage);
  });
  errors.push(...validateSignerName(spec?.signerName, 'spec.signerName'));
  if (spec?.expirationSeconds !== undefined && spec.expirationSeconds < MIN_SECONDS) {
    errors.push(
      fieldError.invalid(
        'spec.expirationSeconds',
        spec.expirationSeconds,
        'may not specify a duration less than 600 seconds (10 minutes)',
      ),
    );
  }
  return errors;
}

/** Validates the signer name of a new request. Only v1beta1 clients may use the legacy signer name. */
export function validateNewSigner(request: CertificateSigningRequest): FieldError[] {
  const name = request.spec?.signerName;
  return name === LEGACY_SIGNER && !isBeta(request) ? [fieldError.invalid('spec.signerName', name, 'not allowed')] : [];
}

function validateSignerName(name: string | undefined, path: string): FieldError[] {
  if (!isSet(name)) return [fieldError.required(path)];
  const slash = name.indexOf('/');
  if (slash <= 0 || slash === name.length - 1) {
    return [
      fieldError.invalid(path, name, 'must be a fully qualified domain and path of the form "example.com/signer-name"'),
    ];
  }
  const errors = dns1123SubdomainErrors(name.slice(0, slash)).map((message) =>
    fieldError.invalid(path, name, `validating label "${name.slice(0, slash)}": ${message}`),
  );
  if (!name.slice(0, slash).includes('.'))
    errors.push(fieldError.invalid(path, name, 'should be a domain with at least two segments separated by dots'));
  for (const part of name.slice(slash + 1).split('.')) {
    errors.push(
      ...dns1123SubdomainErrors(part).map((message) =>
        fieldError.invalid(path, name, `validating label "${part}": ${message}`),
      ),
    );
  }
  if (name.length > MAX_SIGNER_NAME) errors.push(fieldError.tooLong(path, MAX_SIGNER_NAME));
  return errors;
}

/** Requires one PEM block of the type, or at least one if it is a certificate. The value is base64 of the PEM text. */
function validatePem(value: string | undefined, type: string, path: string): FieldError[] {
  const text = value === undefined ? undefined : decodeBase64(value);
  const begin = `-----BEGIN ${type}-----`;
  const end = `-----END ${type}-----`;
  const from = text?.indexOf(begin) ?? -1;
  const to = text?.indexOf(end) ?? -1;
  const body = text === undefined || from < 0 || to < from ? undefined : text.slice(from + begin.length, to);
  if (body !== undefined && /^[A-Za-z0-9+/=\s]+$/.test(body)) return [];
  return [fieldError.invalid(path, value ?? '', `PEM block type must be ${type}`)];
}

const DECISIONS = ['Approved', 'Denied'];
const ALWAYS_TRUE = ['Approved', 'Denied', 'Failed'];

function validateConditions(conditions: readonly CertificateSigningRequestCondition[] | undefined): FieldError[] {
  const errors: FieldError[] = [];
  const types = new Set<string>();
  const path = 'status.conditions';
  (conditions ?? []).forEach((condition, index) => {
    const at = `${path}[${index}]`;
    if (!isSet(condition.type)) errors.push(fieldError.required(`${at}.type`));
    if (!isSet(condition.status)) errors.push(fieldError.required(`${at}.status`));
    else if (ALWAYS_TRUE.includes(condition.type)) {
      if (condition.status !== 'True') errors.push(fieldError.notSupported(`${at}.status`, condition.status, ['True']));
    } else if (!['False', 'True', 'Unknown'].includes(condition.status)) {
      errors.push(fieldError.notSupported(`${at}.status`, condition.status, ['False', 'True', 'Unknown']));
    }
    if (types.has(condition.type)) errors.push(fieldError.duplicate(`${at}.type`, condition.type));
    types.add(condition.type);
    const other = condition.type === 'Approved' ? 'Denied' : condition.type === 'Denied' ? 'Approved' : undefined;
    if (other !== undefined && types.has(other)) {
      errors.push(
        fieldError.invalid(`${at}.type`, condition.type, 'Approved and Denied conditions are mutually exclusive'),
      );
    }
  });
  return errors;
}

/**
 * Validates changes of the status. Approval and denial conditions can only be added, and only through `approval`.
 * Certificates are only set through `status`.
 */
export function validateStatusChange(
  request: CertificateSigningRequest,
  old: CertificateSigningRequest,
  through: 'approval' | 'status',
): FieldError[] {
  const errors = validateConditions(request.status?.conditions);
  for (const type of [...DECISIONS, 'Failed']) {
    const now = (request.status?.conditions ?? []).filter((each) => each.type === type);
    const before = (old.status?.conditions ?? []).filter((each) => each.type === type);
    if (before.length > now.length) {
      errors.push(fieldError.forbidden('status.conditions', `updates may not remove a condition of type "${type}"`));
    } else if (through === 'status' && DECISIONS.includes(type) && !semanticEqual(now, before)) {
      const verb = before.length === 0 ? 'add' : 'modify';
      errors.push(fieldError.forbidden('status.conditions', `updates may not ${verb} a condition of type "${type}"`));
    }
  }
  const certificate = request.status?.certificate;
  if (!semanticEqual(certificate, old.status?.certificate)) {
    if (through === 'approval' || isSet(old.status?.certificate)) {
      errors.push(fieldError.forbidden('status.certificate', 'updates may not set or modify certificate content'));
    } else if (isSet(certificate) && !isBeta(request)) {
      errors.push(...validatePem(certificate, 'CERTIFICATE', 'status.certificate'));
    }
  }
  return errors;
}

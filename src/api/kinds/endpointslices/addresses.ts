/** Addresses a service may send traffic to. Source: k8s.io/kubernetes/pkg/apis/core/validation ValidateEndpointIP. */

import { ipFamilyOf } from '../../../base/addresses.ts';
import { type FieldError, fieldError } from '../../meta/field-error.ts';
import { validateIp } from '../../validation/scalars.ts';

/** No loopback, link-local, multicast or unspecified addresses: they would point at the client itself. */
export function validateEndpointIp(ip: string, path: string): FieldError[] {
  const errors = validateIp(ip, path);
  if (errors.length > 0) return errors;
  const forbid = (what: string): FieldError[] => [fieldError.invalid(path, ip, `may not be ${what}`)];
  if (ipFamilyOf(ip) === 4) {
    const [a = 0, b = 0, c = 0] = ip.split('.').map(Number);
    if (ip === '0.0.0.0') return forbid(`unspecified (${ip})`);
    if (a === 127) return forbid('in the loopback range (127.0.0.0/8, ::1/128)');
    if (a === 169 && b === 254) return forbid('in the link-local range (169.254.0.0/16, fe80::/10)');
    if (a === 224 && b === 0 && c === 0) return forbid('in the link-local multicast range (224.0.0.0/24, ff02::/10)');
    return [];
  }
  const lower = ip.toLowerCase();
  if (/^[0:]+$/.test(lower)) return forbid(`unspecified (${ip})`);
  if (/^[0:]+:0*1$/.test(lower)) return forbid('in the loopback range (127.0.0.0/8, ::1/128)');
  if (/^fe[89ab][0-9a-f]:/.test(lower)) return forbid('in the link-local range (169.254.0.0/16, fe80::/10)');
  if (lower.startsWith('ff02:')) return forbid('in the link-local multicast range (224.0.0.0/24, ff02::/10)');
  return [];
}

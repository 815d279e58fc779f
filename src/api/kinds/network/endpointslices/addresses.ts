/** Validation of endpoint addresses. Source: k8s.io/kubernetes/pkg/apis/core/validation ValidateEndpointIP. */

import { groupsOf, isMapped } from '../../../../base/addresses/addresses.ts';
import { addressKind } from '../../../../base/addresses/destinations.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { validateIp } from '../../../validation/scalars.ts';

/**
 * Rejects unspecified, loopback, link-local and multicast addresses, because they would address the client's own host
 * or link.
 */
export function validateEndpointIp(ip: string, path: string): FieldError[] {
  const errors = validateIp(ip, path);
  if (errors.length > 0) return errors;
  const forbid = (what: string): FieldError[] => [fieldError.invalid(path, ip, `may not be ${what}`)];
  const kind = addressKind(ip);
  if (kind === 'loopback') return forbid('in the loopback range (127.0.0.0/8, ::1/128)');
  if (kind === 'link-local') return forbid('in the link-local range (169.254.0.0/16, fe80::/10)');
  const groups = groupsOf(ip);
  const significant = isMapped(groups) ? groups.slice(-2) : groups;
  const [first = 0, second = 0] = significant;
  if (significant.every((group) => group === 0)) return forbid(`unspecified (${ip})`);
  const isLocalMulticast =
    groups.length === 2 || isMapped(groups) ? first === 0xe000 && second < 0x100 : first === 0xff02;
  if (isLocalMulticast) return forbid('in the link-local multicast range (224.0.0.0/24, ff02::/10)');
  return [];
}

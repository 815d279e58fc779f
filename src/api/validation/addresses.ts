/**
 * Validation of addresses and CIDRs in canonical form, which newer kinds require. Source:
 * k8s.io/apimachinery/pkg/util/validation IsValidIP and IsValidCIDR, RFC 5952.
 */
import { canonicalAddress, groupsOf, isMapped, textOf } from '../../base/addresses/addresses.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { validateCidr } from './scalars.ts';

/** Validates an address with a prefix length, in canonical form. */
export function validateInterfaceAddress(text: string, path: string): FieldError[] {
  if (validateCidr(text, path).length > 0) {
    return [
      fieldError.invalid(path, text, 'must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)'),
    ];
  }
  const [address = '', bits = ''] = text.split('/');
  return mustBe(`${canonicalAddress(address)}/${bits}`, text, path);
}

/** Validates a CIDR in canonical form without host bits. */
export function validateNetwork(text: string, path: string): FieldError[] {
  const errors = validateCidr(text, path);
  if (errors.length > 0) return errors;
  const [address = '', bits = ''] = text.split('/');
  const groups = groupsOf(address);
  if (isMapped(groups)) {
    return [fieldError.invalid(path, text, 'must not have an IPv4-mapped IPv6 address')];
  }
  const beyond = groups.some((group, index) => {
    const kept = Math.min(Math.max(Number(bits) - index * 16, 0), 16);
    return (group & (0xffff >> kept)) !== 0;
  });
  if (beyond) return [fieldError.invalid(path, text, 'must not have bits set beyond the prefix length')];
  return mustBe(`${textOf(groups)}/${bits}`, text, path);
}

const mustBe = (canonical: string, text: string, path: string): FieldError[] =>
  text === canonical
    ? []
    : [fieldError.invalid(path, text, `must be in canonical form (${JSON.stringify(canonical)})`)];

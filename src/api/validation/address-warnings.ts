/**
 * Warnings about addresses and networks that are valid but not in canonical form. Source:
 * k8s.io/apimachinery/pkg/util/validation.
 */
import { canonicalAddress, groupsOf, ipFamilyOf, isMapped, textOf } from '../../base/addresses/addresses.ts';

const DOTTED = 6;
const bytesOf = (group: number): string => `${group >> 8}.${group & 255}`;

/** The IPv4 address inside an IPv4-mapped IPv6 address. */
const unmapped = (groups: readonly number[]): string => groups.slice(DOTTED).map(bytesOf).join('.');

export function addressWarnings(text: string, path: string): string[] {
  const canonical = canonicalAddress(text);
  if (canonical === undefined) return [];
  const groups = groupsOf(text);
  if (isMapped(groups)) {
    return [
      `${path}: non-standard IP address ${JSON.stringify(text)} is invalid: use ${JSON.stringify(unmapped(groups))}`,
    ];
  }
  return canonical === text || ipFamilyOf(text) === 4
    ? []
    : [
        `${path}: IPv6 address ${JSON.stringify(text)} should be in RFC 5952 canonical format (${JSON.stringify(canonical)})`,
      ];
}

export function networkWarnings(text: string, path: string): string[] {
  const [address = '', length = ''] = text.split('/');
  const family = ipFamilyOf(address);
  if (family === 0) return [];
  const groups = groupsOf(address);
  const mapped = isMapped(groups) && Number(length) >= 96;
  const bits = mapped ? Number(length) - 96 : Number(length);
  const own = mapped ? groups.slice(DOTTED) : groups;
  const masked = own.map((group, index) => {
    const kept = Math.min(Math.max(bits - index * 16, 0), 16);
    return group & (0xffff << (16 - kept)) & 0xffff;
  });
  const network = `${textOf(masked)}/${bits}`;
  const warnings: string[] = [];
  if (masked.some((group, index) => group !== own[index])) {
    const single = `${textOf(own)}/${own.length * 16}`;
    warnings.push(
      `${path}: CIDR value ${JSON.stringify(text)} is ambiguous in this context (should be ${JSON.stringify(network)} or ${JSON.stringify(single)}?)`,
    );
  }
  if (isMapped(groups)) {
    warnings.push(
      `${path}: non-standard CIDR value ${JSON.stringify(text)} is invalid: use ${JSON.stringify(network)}`,
    );
  }
  const canonical = `${textOf(groups)}/${length}`;
  if (warnings.length === 0 && family === 6 && canonical !== text) {
    warnings.push(
      `${path}: IPv6 CIDR value ${JSON.stringify(text)} should be in RFC 5952 canonical format (${JSON.stringify(canonical)})`,
    );
  }
  return warnings;
}

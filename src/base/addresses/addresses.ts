/** IP addresses in text form. Source: Go's net/netip, RFC 5952. */

const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;

/** IP version of an address, or 0 if the text is not an IP address. As in upstream, leading zeros are invalid. */
export function ipFamilyOf(text: string): 0 | 4 | 6 {
  if (IPV4.test(text)) return 4;
  return isIpv6(text) ? 6 : 0;
}

function isIpv6(text: string): boolean {
  if (text.length > 45 || !/^[0-9A-Fa-f:.]+$/.test(text)) return false;
  const halves = text.split('::');
  if (halves.length > 2) return false;
  let groups = 0;
  for (const [index, half] of halves.entries()) {
    if (half === '') continue;
    const parts = half.split(':');
    for (const [position, part] of parts.entries()) {
      const last = position === parts.length - 1 && index === halves.length - 1;
      if (last && part.includes('.')) {
        if (!IPV4.test(part)) return false;
        groups += 2;
      } else {
        if (!/^[0-9A-Fa-f]{1,4}$/.test(part)) return false;
        groups++;
      }
    }
  }
  return halves.length === 2 ? groups < 8 : groups === 8;
}

const GROUPS = 8;
/** Prefix of IPv4-mapped IPv6 addresses. */
const MAPPED = [0, 0, 0, 0, 0, 0xffff];

/** The address as 16-bit groups: two for IPv4, eight for IPv6. */
export function groupsOf(text: string): number[] {
  if (!text.includes(':')) {
    const [a = 0, b = 0, c = 0, d = 0] = text.split('.').map(Number);
    return [a * 256 + b, c * 256 + d];
  }
  const words = text.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...bytes: string[]) => {
    const [a = 0, b = 0, c = 0, d = 0] = bytes.slice(0, 4).map(Number);
    return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  });
  const [head = '', tail] = words.split('::').map((half) => (half === '' ? [] : half.split(':')));
  const parts = [...head];
  if (tail !== undefined) parts.push(...Array<string>(GROUPS - head.length - tail.length).fill('0'), ...tail);
  return parts.map((part) => Number.parseInt(part, 16));
}

export function textOf(groups: readonly number[]): string {
  const dotted = (from: number): string =>
    groups
      .slice(from)
      .flatMap((group) => [group >> 8, group & 255])
      .join('.');
  if (groups.length === 2) return dotted(0);
  if (isMapped(groups)) return `::ffff:${dotted(MAPPED.length)}`;
  let best = { from: 0, length: 1 };
  for (let from = 0; from < groups.length; from++) {
    let length = 0;
    while (groups[from + length] === 0) length++;
    if (length > best.length) best = { from, length };
  }
  const hex = groups.map((group) => group.toString(16));
  if (best.length === 1) return hex.join(':');
  return `${hex.slice(0, best.from).join(':')}::${hex.slice(best.from + best.length).join(':')}`;
}

/** The canonical text form; undefined if the text is not an address. */
export function canonicalAddress(text: string): string | undefined {
  // The text of an IPv4 address is always canonical.
  if (IPV4.test(text)) return text;
  return isIpv6(text) ? textOf(groupsOf(text)) : undefined;
}

/**
 * Canonical form of a socket's peer address, without a zone and without the IPv6 mapping of an IPv4 address. Text that
 * is not an address is returned unchanged.
 */
export function peerAddress(text: string): string {
  // Fast path for every request: nearly all peers have an address in one of these two forms.
  const ipv4 = text.startsWith('::ffff:') ? text.slice('::ffff:'.length) : text;
  if (IPV4.test(ipv4)) return ipv4;
  const plain = text.replace(/%.*$/, '');
  if (ipFamilyOf(plain) === 0) return plain;
  const groups = groupsOf(plain);
  return textOf(isMapped(groups) ? groups.slice(-2) : groups);
}

const NETWORK_GROUPS = 4;

/**
 * Peer network for rate limits: the IPv4 address, or the /64 of an IPv6 address, because a host can choose any address
 * in its /64.
 */
export function peerNetwork(text: string): string {
  const address = peerAddress(text);
  if (ipFamilyOf(address) !== 6) return address;
  const groups = groupsOf(address).map((group, index) => (index < NETWORK_GROUPS ? group : 0));
  return `${textOf(groups)}/64`;
}

/** Validates the name of an IPAddress object. */
export function addressNameErrors(name: string): string[] {
  const canonical = canonicalAddress(name);
  if (canonical === undefined) return [`ParseAddr(${JSON.stringify(name)}): unable to parse IP`];
  return canonical === name ? [] : ['must be a canonical format IP address'];
}

export const isMapped = (groups: readonly number[]): boolean =>
  groups.length === GROUPS && MAPPED.every((group, index) => groups[index] === group);

/**
 * Whether an address is in a network such as `10.0.0.0/8` or `2001:db8::/64`. False if their families differ. Both
 * arguments must be valid.
 */
export function isInNetwork(address: string, network: string): boolean {
  const [base = '', bits = ''] = network.split('/');
  if (ipFamilyOf(address) !== ipFamilyOf(base)) return false;
  const [left, right] = [groupsOf(address), groupsOf(base)];
  return left.every((group, index) => {
    const shift = 16 - Math.min(16, Math.max(0, Number(bits) - index * 16));
    return group >> shift === (right[index] ?? 0) >> shift;
  });
}

import { isIP } from 'node:net';

/** Bytes of an address as in Go's `net.IP`: 4 for IPv4, 16 for IPv6. */
export function ipBytes(ip: string): Uint8Array {
  if (isIP(ip) === 4) return Uint8Array.from(ip.split('.'), Number);
  if (isIP(ip) !== 6) throw new RangeError(`${ip} is not an IP address`);
  const text = new URL(`http://[${ip.replace(/%.*$/, '')}]`).hostname.slice(1, -1);
  const [head = '', tail] = text.split('::');
  const groups = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
  const before = groups(head);
  const after = tail === undefined ? [] : groups(tail);
  const all = [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after];
  return Uint8Array.from(all.flatMap((group) => [group >> 8, group & 0xff]));
}

/**
 * Shortest text of an address. An IPv4-mapped IPv6 address becomes IPv4, because Go writes both forms. Undefined if the
 * length is neither 4 nor 16.
 */
export function ipText(bytes: Uint8Array): string | undefined {
  if (bytes.length === 4) return bytes.join('.');
  if (bytes.length !== 16) return undefined;
  const mapped = bytes.subarray(0, 10).every((byte) => byte === 0) && bytes[10] === 0xff && bytes[11] === 0xff;
  if (mapped) return bytes.subarray(12).join('.');
  const groups: string[] = [];
  for (let i = 0; i < 16; i += 2) groups.push((((bytes[i] ?? 0) << 8) | (bytes[i + 1] ?? 0)).toString(16));
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
}

/** Shortest text of an address, as in {@link ipText}; undefined if the address is invalid. */
export function canonicalIp(ip: string): string | undefined {
  return isIP(ip) === 0 ? undefined : ipText(ipBytes(ip));
}

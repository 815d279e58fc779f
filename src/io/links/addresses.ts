/** IPv4 ranges as numbers. */
export interface Range {
  /** Network address. */
  readonly base: number;
  readonly bits: number;
}

/** Throws a plain Error naming what is wrong. */
export function parseRange(cidr: string): Range {
  const [address = '', length = ''] = cidr.split('/');
  const bits = Number(length);
  if (!/^\d{1,2}$/.test(length) || bits > 32) throw new Error(`"${cidr}" is not an IPv4 range`);
  const mask = bits === 0 ? 0 : (0xffffffff << (32 - bits)) >>> 0;
  return { base: (toNumber(address) & mask) >>> 0, bits };
}

export function toNumber(address: string): number {
  const parts = address.split('.');
  if (parts.length !== 4 || parts.some((part) => !/^\d{1,3}$/.test(part) || Number(part) > 255))
    throw new Error(`"${address}" is not an IPv4 address`);
  return parts.reduce((value, part) => value * 256 + Number(part), 0);
}

export function toText(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join('.');
}

/** The first host address: the bridge's own and the pods' gateway. */
export function gatewayOf(range: Range): number {
  return range.base + 1;
}

/**
 * The next free host address after `last`, wrapping around; undefined when the range is full. Next-fit, so that an
 * address is reused as late as possible: peers may still hold connections to its former owner.
 */
export function nextFree(range: Range, last: number, taken: (address: number) => boolean): number | undefined {
  const first = gatewayOf(range) + 1;
  const end = range.base + 2 ** (32 - range.bits) - 2;
  const count = end - first + 1;
  if (count <= 0) return undefined;
  const start = last >= first && last < end ? last + 1 : first;
  for (let step = 0; step < count; step++) {
    const candidate = first + ((start - first + step) % count);
    if (!taken(candidate)) return candidate;
  }
  return undefined;
}

/** Address pools of load balancers: `10.0.0.240-10.0.0.250`, `10.0.1.0/28`, `fd00::10`. */
import { addressText, addressValue, parseNetwork, sizeOf } from './networks.ts';

export interface AddressRange {
  readonly family: 4 | 6;
  readonly first: bigint;
  readonly last: bigint;
}

/** Parses one address, range or network; undefined if it is invalid. */
export function parseAddressRange(text: string): AddressRange | undefined {
  if (text.includes('/')) {
    const network = parseNetwork(text);
    if (network === undefined) return undefined;
    return { family: network.family, first: network.base, last: network.base + sizeOf(network) - 1n };
  }
  const [low = '', high = low, ...rest] = text.split('-').map((part) => part.trim());
  const first = addressValue(low);
  const last = addressValue(high);
  if (first === undefined || last === undefined || rest.length > 0) return undefined;
  if (first.family !== last.family || first.value > last.value) return undefined;
  return { family: first.family, first: first.value, last: last.value };
}

/** Parses a list of ranges. Invalid ranges are ignored. */
export const parseAddressPool = (texts: readonly string[]): AddressRange[] =>
  texts.map(parseAddressRange).filter((range) => range !== undefined);

export function isInPool(pool: readonly AddressRange[], address: string): boolean {
  const parsed = addressValue(address);
  if (parsed === undefined) return false;
  return pool.some(
    ({ family, first, last }) => family === parsed.family && parsed.value >= first && parsed.value <= last,
  );
}

/**
 * Returns a function that returns the lowest unused address of a family, and a higher one at each call. Each address is
 * checked only once, so an address that becomes unused later is not found.
 */
export function freeAddresses(
  pool: readonly AddressRange[],
  isUsed: (address: string) => boolean,
): (family: 4 | 6) => string | undefined {
  const left = { 4: unusedOf(pool, 4, isUsed), 6: unusedOf(pool, 6, isUsed) };
  return (family) => left[family].next().value ?? undefined;
}

function* unusedOf(
  pool: readonly AddressRange[],
  wanted: 4 | 6,
  isUsed: (address: string) => boolean,
): Generator<string, undefined> {
  for (const { family, first, last } of pool) {
    if (family !== wanted) continue;
    for (let value = first; value <= last; value++) {
      const address = addressText(value, family);
      if (!isUsed(address)) yield address;
    }
  }
  return undefined;
}

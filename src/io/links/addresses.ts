import { addressText, addressValue, type Network, sizeOf } from '../../base/networks.ts';

/** The first host address: the bridge's own and the pods' gateway. */
export const gatewayOf = (network: Network): bigint => network.base + 1n;

/** Searched beyond this many taken addresses: no host has as many pods. */
const MAX_TRIED = 1n << 20n;

/**
 * The next free host address after `last`, wrapping around; undefined when the range is full. Next-fit, so that an
 * address is reused as late as possible: peers may still hold connections to its former owner.
 */
export function nextFree(network: Network, last: bigint, taken: (address: bigint) => boolean): bigint | undefined {
  const first = gatewayOf(network) + 1n;
  // The highest address of an IPv4 range is its broadcast address.
  const end = network.base + sizeOf(network) - (network.family === 4 ? 2n : 1n);
  const count = end - first + 1n;
  if (count <= 0n) return undefined;
  const start = last >= first && last < end ? last + 1n : first;
  for (let step = 0n; step < count && step < MAX_TRIED; step++) {
    const candidate = first + ((start - first + step) % count);
    if (!taken(candidate)) return candidate;
  }
  return undefined;
}

/** The addresses that pods of this host hold, of both families. */
export class AddressBook {
  readonly #taken = new Set<string>();
  readonly #last = new Map<4 | 6, bigint>();

  /** Undefined when the range is full. */
  take(network: Network): string | undefined {
    const { family } = network;
    const next = nextFree(network, this.#last.get(family) ?? 0n, (value) =>
      this.#taken.has(addressText(value, family)),
    );
    if (next === undefined) return undefined;
    const text = addressText(next, family);
    this.hold(text);
    return text;
  }

  hold(address: string): void {
    const parsed = addressValue(address);
    if (parsed === undefined) return;
    this.#taken.add(address);
    this.#last.set(parsed.family, parsed.value);
  }

  release(address: string): void {
    this.#taken.delete(address);
  }
}

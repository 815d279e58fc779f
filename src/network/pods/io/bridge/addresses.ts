import { addressText, addressValue, type Network, sizeOf } from '../../../../base/addresses/networks.ts';

/** First host address of the range: the address of the bridge, which is the gateway of the pods. */
export const gatewayOf = (network: Network): bigint => network.base + 1n;

/** Maximum number of addresses to try, more than a host can have pods. */
const MAX_TRIED = 1n << 20n;

/**
 * The next free host address after `last`, wrapping around; undefined if the range is exhausted. Next-fit delays the
 * reuse of an address, because peers may still have connections to its former owner.
 */
export function nextFree(network: Network, last: bigint, isUsed: (address: bigint) => boolean): bigint | undefined {
  const first = gatewayOf(network) + 1n;
  // The highest address of an IPv4 range is its broadcast address.
  const end = network.base + sizeOf(network) - (network.family === 4 ? 2n : 1n);
  const count = end - first + 1n;
  if (count <= 0n) return undefined;
  const start = last >= first && last < end ? last + 1n : first;
  for (let step = 0n; step < count && step < MAX_TRIED; step++) {
    const candidate = first + ((start - first + step) % count);
    if (!isUsed(candidate)) return candidate;
  }
  return undefined;
}

const SMALLEST_WITH_RESERVE = 64n;
const RESERVE_TRIES = 8n;

/** Maximum number of remembered former addresses, more than a host can have pods to restart. */
const MAX_FORMER = 1_024;

/**
 * Addresses of this host's pods, of both families. A pod whose sandbox is replaced, for example after a reboot, gets
 * its former address again, so that endpoints and network policies with that address stay valid without an API server.
 */
export class AddressBook {
  readonly #allocated = new Set<string>();
  readonly #last = new Map<4 | 6, bigint>();
  /** Released addresses by `owner/family`. `#formerly` contains the same addresses as a set. */
  readonly #former = new Map<string, string>();
  readonly #formerly = new Set<string>();

  /** Takes an address for a pod with the UID `owner`. Returns undefined if the range is exhausted. */
  take(network: Network, owner: string): string | undefined {
    const { family } = network;
    const former = this.#former.get(`${owner}/${family}`);
    if (former !== undefined) this.#forget(`${owner}/${family}`, former);
    if (former !== undefined && !this.#allocated.has(former) && isIn(network, former)) {
      this.hold(former);
      return former;
    }
    const last = this.#last.get(family) ?? 0n;
    const text = (value: bigint): string => addressText(value, family);
    const next =
      nextFree(network, last, (value) => this.#allocated.has(text(value)) || this.#formerly.has(text(value))) ??
      nextFree(network, last, (value) => this.#allocated.has(text(value)));
    if (next === undefined) return undefined;
    this.hold(text(next));
    return text(next);
  }

  /**
   * Reserves an address near the end of the range, which no pod gets. Returns undefined if the range is small or pods
   * already have these addresses.
   */
  reserve(range: Network): string | undefined {
    if (sizeOf(range) < SMALLEST_WITH_RESERVE) return undefined;
    for (let back = 3n; back < 3n + RESERVE_TRIES; back++) {
      const address = addressText(range.base + sizeOf(range) - back, range.family);
      if (this.#allocated.has(address)) continue;
      this.#allocated.add(address);
      return address;
    }
    return undefined;
  }

  hold(address: string): void {
    const parsed = addressValue(address);
    if (parsed === undefined) return;
    this.#allocated.add(address);
    this.#last.set(parsed.family, parsed.value);
  }

  /**
   * Releases an address. If `owner` is given, the address is kept for that owner as long as other addresses are free.
   */
  release(address: string, owner?: string): void {
    this.#allocated.delete(address);
    const parsed = addressValue(address);
    if (owner === undefined || parsed === undefined) return;
    const key = `${owner}/${parsed.family}`;
    const before = this.#former.get(key);
    if (before !== undefined) this.#forget(key, before);
    this.#former.set(key, address);
    this.#formerly.add(address);
    const [oldest] = this.#former;
    if (this.#former.size > MAX_FORMER && oldest !== undefined) this.#forget(...oldest);
  }

  #forget(key: string, address: string): void {
    this.#former.delete(key);
    this.#formerly.delete(address);
  }
}

function isIn(network: Network, address: string): boolean {
  const parsed = addressValue(address);
  if (parsed?.family !== network.family) return false;
  return parsed.value > gatewayOf(network) && parsed.value < network.base + sizeOf(network);
}

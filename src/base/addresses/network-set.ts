import { addressValue, parseNetwork, sizeOf } from './networks.ts';

interface Range {
  readonly first: bigint;
  last: bigint;
}

/** Set of addresses and networks. The cost of a look-up hardly grows with their number. */
export class NetworkSet {
  /** Sorted and disjoint. */
  readonly #ranges: Readonly<Record<4 | 6, readonly Range[]>>;

  /** Each text is an address or a network such as `10.0.0.0/8`. Invalid texts are ignored. */
  constructor(texts: readonly string[]) {
    const found: Record<4 | 6, Range[]> = { 4: [], 6: [] };
    for (const text of texts) {
      const network = parseNetwork(text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`);
      if (network === undefined) continue;
      found[network.family].push({ first: network.base, last: network.base + sizeOf(network) - 1n });
    }
    this.#ranges = { 4: merged(found[4]), 6: merged(found[6]) };
  }

  has(address: string): boolean {
    const parsed = addressValue(address);
    if (parsed === undefined) return false;
    const ranges = this.#ranges[parsed.family];
    let [from, to] = [0, ranges.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      if ((ranges[middle]?.last ?? 0n) < parsed.value) from = middle + 1;
      else to = middle;
    }
    const found = ranges[from];
    return found !== undefined && found.first <= parsed.value;
  }
}

function merged(ranges: readonly Range[]): Range[] {
  const result: Range[] = [];
  for (const range of [...ranges].sort((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0))) {
    const before = result.at(-1);
    if (before === undefined || range.first > before.last) result.push(range);
    else if (range.last > before.last) before.last = range.last;
  }
  return result;
}

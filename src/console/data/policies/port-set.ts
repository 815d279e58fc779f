/** Sets of protocols and ports that connections may use. */

export const PROTOCOLS = ['TCP', 'UDP', 'SCTP'] as const;
export type Protocol = (typeof PROTOCOLS)[number];

export interface PortRange {
  readonly protocol: Protocol;
  readonly from: number;
  readonly to: number;
}

/** Ports of connections. `all` includes protocols without ports, such as ICMP. Ranges are sorted and disjoint. */
export type PortSet = 'all' | readonly PortRange[];

export const NO_PORTS: PortSet = [];
export const LAST_PORT = 65_535;

const orderOf = (protocol: Protocol): number => PROTOCOLS.indexOf(protocol);

export function portUnion(sets: readonly PortSet[]): PortSet {
  const ranges: PortRange[] = [];
  for (const set of sets) {
    if (set === 'all') return 'all';
    ranges.push(...set);
  }
  ranges.sort((a, b) => orderOf(a.protocol) - orderOf(b.protocol) || a.from - b.from);
  const merged: PortRange[] = [];
  for (const range of ranges) {
    const last = merged.at(-1);
    if (last !== undefined && last.protocol === range.protocol && range.from <= last.to + 1)
      merged[merged.length - 1] = { ...last, to: Math.max(last.to, range.to) };
    else merged.push(range);
  }
  return merged;
}

export function portIntersection(left: PortSet, right: PortSet): PortSet {
  if (left === 'all') return right;
  if (right === 'all') return left;
  return left.flatMap(({ protocol, from, to }) =>
    right
      .filter((other) => other.protocol === protocol && other.from <= to && from <= other.to)
      .map((other) => ({ protocol, from: Math.max(from, other.from), to: Math.min(to, other.to) })),
  );
}

export const allowsPort = (set: PortSet, protocol: string, port: number): boolean =>
  set === 'all' || set.some((range) => range.protocol === protocol && range.from <= port && port <= range.to);

/** Text such as `TCP 80, 8080–8090; UDP`, `all` or `none`. A protocol without numbers stands for all its ports. */
export function portsText(set: PortSet): string {
  if (set === 'all') return 'all';
  const parts = PROTOCOLS.flatMap((protocol) => {
    const ranges = set.filter((range) => range.protocol === protocol);
    if (ranges.length === 0) return [];
    if (ranges.some(({ from, to }) => from <= 1 && to === LAST_PORT)) return [protocol];
    return [`${protocol} ${ranges.map(({ from, to }) => (from === to ? from : `${from}–${to}`)).join(', ')}`];
  });
  return parts.length === 0 ? 'none' : parts.join('; ');
}

import type { Overlay, OverlayChange, PodRoute, TunnelForward, TunnelLink, TunnelNeighbor } from './port.ts';

/** Changes in an order that avoids failures: links, then neighbors, then routes; removals in reverse order. */
export function overlayChanges(desired: Overlay, present: Overlay): OverlayChange[] {
  const changes: OverlayChange[] = [];
  const { remade, links } = linkChanges(desired.links, present.links);
  changes.push(...links);
  // A deleted link loses its neighbors and forwarding entries too, so those count as missing.
  const standing = {
    neighbors: present.neighbors.filter(({ link }) => !remade.has(link)),
    forwards: present.forwards.filter(({ link }) => !remade.has(link)),
    routes: present.routes.filter(({ via }) => via === undefined || !remade.has(via.link)),
  };
  const neighbors = sides(desired.neighbors, standing.neighbors, neighborKey, sameNeighbor);
  const forwards = sides(desired.forwards, standing.forwards, forwardKey, sameForward);
  const routes = sides(desired.routes, standing.routes, routeKey, sameRoute);
  changes.push(...forwards.wanted.map((forward) => ({ op: 'replace-forward' as const, forward })));
  changes.push(...neighbors.wanted.map((neighbor) => ({ op: 'replace-neighbor' as const, neighbor })));
  changes.push(...routes.wanted.map((route) => ({ op: 'replace-route' as const, route })));
  changes.push(...routes.removed.map((route) => ({ op: 'delete-route' as const, route })));
  changes.push(...neighbors.removed.map((neighbor) => ({ op: 'delete-neighbor' as const, neighbor })));
  changes.push(...forwards.removed.map((forward) => ({ op: 'delete-forward' as const, forward })));
  const removed = present.links.filter(({ name }) => !desired.links.some((link) => link.name === name));
  changes.push(...removed.map(({ name }) => ({ op: 'delete-link' as const, name })));
  // Objects that are deleted with their link need no removal.
  const dead = new Set(removed.map(({ name }) => name));
  return changes.filter((change) => !(isRemoval(change) && dead.has(linkOf(change) ?? '')));
}

function linkChanges(
  desired: readonly TunnelLink[],
  present: readonly TunnelLink[],
): { readonly remade: ReadonlySet<string>; readonly links: OverlayChange[] } {
  const remade = new Set<string>();
  const links: OverlayChange[] = [];
  for (const link of desired) {
    const found = present.find(({ name }) => name === link.name);
    if (found !== undefined && isKept(found, link)) {
      const staleAddresses = found.addresses.filter((address) => !link.addresses.includes(address));
      const complete = link.addresses.every((address) => found.addresses.includes(address));
      if (found.mtu !== link.mtu || staleAddresses.length > 0 || !complete)
        links.push({ op: 'update-link', link, staleAddresses });
      continue;
    }
    remade.add(link.name);
    if (found !== undefined) links.push({ op: 'delete-link', name: link.name });
    links.push({ op: 'add-link', link });
  }
  return { remade, links };
}

const isKept = (found: TunnelLink, wanted: TunnelLink): boolean =>
  found.underlay === wanted.underlay && found.mac === wanted.mac && found.local === wanted.local;

const neighborKey = ({ link, address }: TunnelNeighbor): string => `${link} ${address}`;
const sameNeighbor = (left: TunnelNeighbor, right: TunnelNeighbor): boolean => left.mac === right.mac;
const forwardKey = ({ link, mac }: TunnelForward): string => `${link} ${mac}`;
const sameForward = (left: TunnelForward, right: TunnelForward): boolean => left.destination === right.destination;
const routeKey = ({ destination }: PodRoute): string => destination;
const sameRoute = (left: PodRoute, right: PodRoute): boolean =>
  left.mtu === right.mtu &&
  left.via?.link === right.via?.link &&
  left.via?.gateway === right.via?.gateway &&
  left.via?.onLink === right.via?.onLink;

function sides<T>(
  desired: readonly T[],
  present: readonly T[],
  key: (entry: T) => string,
  same: (left: T, right: T) => boolean,
): { readonly wanted: T[]; readonly removed: T[] } {
  const found = new Map(present.map((entry) => [key(entry), entry]));
  const wanted = desired.filter((entry) => {
    const there = found.get(key(entry));
    return there === undefined || !same(there, entry);
  });
  const keys = new Set(desired.map(key));
  return { wanted, removed: present.filter((entry) => !keys.has(key(entry))) };
}

const isRemoval = ({ op }: OverlayChange): boolean =>
  op === 'delete-route' || op === 'delete-neighbor' || op === 'delete-forward';

function linkOf(change: OverlayChange): string | undefined {
  if ('route' in change) return change.route.via?.link;
  if ('neighbor' in change) return change.neighbor.link;
  return 'forward' in change ? change.forward.link : undefined;
}

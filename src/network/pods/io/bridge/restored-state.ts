/** Compares the links and routes of the pod network with the kernel's and returns the commands that restore them. */
import { isIP } from 'node:net';
import { anything, decodeJson, list } from '../../../../base/decode.ts';
import { command } from '../command.ts';

/** Device group of the host ends of pod links. Packet filter rules match pod links by this group. */
export const POD_LINK_GROUP = 26_725;

const MAX_LISTING = 16 * 1024 * 1024;

export interface DesiredLink {
  readonly name: string;
  /** Addresses with prefix length, such as `10.128.0.1/23`. */
  readonly addresses: readonly string[];
  readonly routes: readonly DesiredRoute[];
  /** Device group of the link; undefined if any group is correct. */
  readonly group?: number;
}

export interface DesiredRoute {
  /** Destination in the format of `ip route`, in which a host route has no prefix length. */
  readonly destination: string;
  readonly options: string;
}

interface ObservedLink {
  readonly isUp: boolean;
  readonly group: string;
  readonly addresses: ReadonlySet<string>;
}

export interface ObservedNetwork {
  readonly links: ReadonlyMap<string, ObservedLink>;
  /** Routes of the main table, each as `DESTINATION LINK`. */
  readonly routes: ReadonlySet<string>;
}

interface ListedAddresses {
  readonly ifname?: string;
  readonly flags?: readonly string[];
  readonly group?: string;
  readonly addr_info?: readonly { readonly local?: string; readonly prefixlen?: number }[];
}

/** Lists the links and routes. One process lists the links and the IPv4 routes. */
export async function observeNetwork(ip: string, families: readonly (4 | 6)[]): Promise<ObservedNetwork> {
  const run = async (args: readonly string[], input = ''): Promise<(readonly unknown[])[]> => {
    const text = await command(ip, ['-json', ...args], input, MAX_LISTING);
    return text
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line) => decodeJson(list(anything), line, 'ip'));
  };
  const [[listed = [], ...four], six] = await Promise.all([
    run(['-batch', '-'], families.includes(4) ? 'address show\nroute show\n' : 'address show\n'),
    families.includes(6) ? run(['-6', 'route', 'show']) : [],
  ]);
  const addresses = listed as ListedAddresses[];
  const routes = [...four, ...six].flat() as { dst?: string; dev?: string }[];
  const links = addresses.map(
    ({ ifname = '', flags = [], group = '', addr_info: held = [] }): [string, ObservedLink] => [
      ifname,
      {
        isUp: flags.includes('UP'),
        group,
        addresses: new Set(held.map(({ local = '', prefixlen = 0 }) => `${local}/${prefixlen}`)),
      },
    ],
  );
  return {
    links: new Map(links),
    routes: new Set(routes.map(({ dst = '', dev = '' }) => `${dst} ${dev}`)),
  };
}

/** Addresses to which the host has routes through pod links: those of all pods that are connected. */
export async function linkedAddresses(ip: string): Promise<string[]> {
  const { links, routes } = await observeNetwork(ip, [4, 6]);
  return [...routes].flatMap((route) => {
    const [destination = '', link = ''] = route.split(' ');
    return links.get(link)?.group === String(POD_LINK_GROUP) && isIP(destination) !== 0 ? [destination] : [];
  });
}

/**
 * Lines for `ip -batch` that restore a link; empty if there is no difference, undefined if the link itself is missing.
 */
export function repairs(
  { name, addresses, routes, group }: DesiredLink,
  observed: ObservedNetwork,
): string[] | undefined {
  const link = observed.links.get(name);
  if (link === undefined) return undefined;
  return [
    ...(group === undefined || link.group === String(group) ? [] : [`link set ${name} group ${group}`]),
    ...(link.isUp ? [] : [`link set ${name} up`]),
    ...addresses
      .filter((each) => !link.addresses.has(each))
      .map((each) => `addr replace ${each} dev ${name}${each.includes(':') ? ' nodad' : ''}`),
    // Routes of a link that was down are restored too, because the kernel has removed them.
    ...routes
      .filter(({ destination }) => !link.isUp || !observed.routes.has(`${destination} ${name}`))
      .map(({ destination, options }) => `route replace ${destination} dev ${name} ${options}`.trimEnd()),
  ];
}

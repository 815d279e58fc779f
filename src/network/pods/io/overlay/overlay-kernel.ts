/**
 * Manages routes, VXLAN devices and their entries with the tools of iproute2. This program's routes, including those of
 * an earlier process, are recognized by protocol number and metric. Other routes are neither read nor replaced.
 */

import { canonicalAddress } from '../../../../base/addresses/addresses.ts';
import { decodeJson, fields, list, own } from '../../../../base/decode.ts';
import { messageOf } from '../../../../base/errors.ts';
import type { Log } from '../../../../base/log.ts';
import { RuntimeError } from '../../../../runtime/port.ts';
import type {
  Family,
  Overlay,
  OverlayChange,
  OverlayKernel,
  PeerPath,
  PodRoute,
  TunnelForward,
  TunnelLink,
  TunnelNeighbor,
} from '../../core/port.ts';
import { watchAddresses } from '../bridge/address-watch.ts';
import { command, firstLine, output } from '../command.ts';
import { VXLAN_ID, VXLAN_PORT } from '../filter/filter.ts';
import { createTunnelGuard } from '../filter/tunnel-guard.ts';
import { createPathProbe } from './path-probe.ts';

/** Metric of this program's routes. Static routes of an administrator have a smaller metric and are preferred. */
export const METRIC = 178;
/** Maximum size of a listing, sufficient for several thousand routes. */
const MAX_LISTING = 16 * 1024 * 1024;

export interface OverlayKernelOptions {
  /** rtnetlink(7) protocol number of this program's routes: 5 to 255, not used by other programs on the host. */
  readonly protocol: number;
  readonly tunnelNames: Readonly<Record<Family, string>>;
  readonly ipPath?: string;
  readonly bridgePath?: string;
  /** Name of the packet filter table that blocks foreign senders from the VXLAN devices. */
  readonly guardTable: string;
  readonly nftPath?: string;
  /** Called with each line of `ip monitor` about a deleted address, route or link. */
  readonly lost?: (line: string) => void;
  readonly log: Log;
}

/** Fields of the output of `ip -json` that are used. */
interface ListedRoute {
  readonly type?: string;
  readonly dst?: string;
  readonly gateway?: string;
  readonly dev?: string;
  readonly flags?: readonly string[];
  readonly metrics?: readonly { readonly mtu?: number }[];
}
interface ListedLink {
  readonly ifname?: string;
  readonly address?: string;
  readonly mtu?: number;
  readonly linkinfo?: {
    readonly info_kind?: string;
    readonly info_data?: { readonly id?: number; readonly local6?: string };
  };
  readonly addr_info?: readonly { readonly local?: string; readonly prefixlen?: number; readonly scope?: string }[];
}
interface ListedEntry {
  readonly dst?: string;
  readonly mac?: string;
  readonly lladdr?: string;
}

export function createOverlayKernel(options: OverlayKernelOptions): OverlayKernel {
  const ip = options.ipPath ?? 'ip';
  const bridge = options.bridgePath ?? 'bridge';
  const probe = createPathProbe(VXLAN_PORT);

  const listed = async <T>(tool: string, ...args: readonly string[]): Promise<T[]> => {
    const text = await command(tool, ['-json', ...args], '', MAX_LISTING);
    return text.trim() === '' ? [] : [...decodeJson(list(own<T>(fields)), text, tool)];
  };

  /** MTU by link name. */
  const mtus = async (links: Iterable<string>): Promise<Map<string, number>> => {
    const found = await batch<ListedLink>(
      ip,
      [...new Set(links)].map((link) => `link show dev ${link}`),
    );
    return new Map(
      found.flatMap(({ ifname, mtu }) => (ifname === undefined || mtu === undefined ? [] : [[ifname, mtu]])),
    );
  };

  const routesTo = async (addresses: readonly string[]): Promise<ListedRoute[]> =>
    batch<ListedRoute>(
      ip,
      addresses.map((address) => `route get ${address}`),
    );

  const paths = async (addresses: readonly string[], { probe: probing }: { readonly probe: boolean }) => {
    const read = async (): Promise<Map<string, PeerPath>> => {
      const routes = (await routesTo(addresses)).filter(({ type = 'unicast' }) => type === 'unicast');
      const linkMtus = await mtus(routes.flatMap(({ dev }) => (dev === undefined ? [] : [dev])));
      return new Map(
        routes.flatMap(({ dst = '', dev = '', gateway, metrics }) => {
          const linkMtu = linkMtus.get(dev);
          const learnt = metrics?.find(({ mtu }) => mtu !== undefined)?.mtu;
          return linkMtu === undefined
            ? []
            : [[dst, { link: dev, gateway, mtu: Math.min(linkMtu, learnt ?? linkMtu) }] as const];
        }),
      );
    };
    const found = await read();
    // Only paths through a gateway are probed, because a destination on the link has no router with a smaller MTU.
    const far = [...found].filter(([, { gateway }]) => gateway !== undefined);
    if (!probing || far.length === 0) return found;
    await probe(far.map(([address, { mtu }]) => ({ address, mtu })));
    return read();
  };

  const observe = async (): Promise<Overlay> => {
    const names: readonly string[] = Object.values(options.tunnelNames);
    const protocol = String(options.protocol);
    const [four, six, devices] = await Promise.all([
      listed<ListedRoute>(ip, '-4', 'route', 'show', 'proto', protocol),
      listed<ListedRoute>(ip, '-6', 'route', 'show', 'proto', protocol).catch((): ListedRoute[] => []),
      listed<ListedLink>(ip, '-d', 'addr', 'show', 'type', 'vxlan'),
    ]);
    const links = devices
      .filter(({ ifname = '' }) => names.includes(ifname))
      .map((device) => linkOf(device, options.tunnelNames));
    const entries = await Promise.all(
      links.map(async ({ name }) => ({
        name,
        neighbors: (
          await Promise.all(
            ['-4', '-6'].map((family) =>
              listed<ListedEntry>(ip, family, 'neigh', 'show', 'dev', name, 'nud', 'permanent'),
            ),
          )
        ).flat(),
        forwards: await listed<ListedEntry>(bridge, 'fdb', 'show', 'dev', name),
      })),
    );
    return {
      links,
      routes: [...four.map((route) => routeOf(route, 32)), ...six.map((route) => routeOf(route, 128))],
      neighbors: entries.flatMap(({ name, neighbors }) =>
        neighbors.flatMap(({ dst, lladdr }): TunnelNeighbor[] =>
          dst === undefined || lladdr === undefined ? [] : [{ link: name, address: dst, mac: lladdr }],
        ),
      ),
      forwards: entries.flatMap(({ name, forwards }) =>
        forwards.flatMap(({ dst, mac }): TunnelForward[] =>
          dst === undefined || mac === undefined ? [] : [{ link: name, mac, destination: dst }],
        ),
      ),
    };
  };

  return {
    paths,
    linkMtu: async (address) => {
      const found = await listed<ListedLink>(ip, 'addr', 'show', 'to', address);
      // Links without the address are listed as empty objects.
      return found.find(({ mtu }) => mtu !== undefined)?.mtu;
    },
    observe,
    apply: (changes) => apply(changes, { ip, bridge, protocol: options.protocol }),
    watch: (changed) =>
      watchAddresses({
        ip,
        protocol: options.protocol,
        changed,
        log: options.log,
        ...(options.lost === undefined ? {} : { lost: options.lost }),
      }),
    guard: createTunnelGuard(options.nftPath ?? 'nft', options.guardTable),
  };
}

/** Results of several queries in one process. A query without a result adds no element. */
async function batch<T>(tool: string, lines: readonly string[]): Promise<T[]> {
  if (lines.length === 0) return [];
  const { stdout } = await output(tool, ['-force', '-json', '-batch', '-'], `${lines.join('\n')}\n`, MAX_LISTING);
  return stdout
    .split('\n')
    .filter((line) => line.trim() !== '')
    .flatMap((line) => decodeJson(list(own<T>(fields)), line, tool));
}

function linkOf(device: ListedLink, names: Readonly<Record<Family, string>>): TunnelLink {
  const data = device.linkinfo?.info_data;
  return {
    name: device.ifname ?? '',
    underlay: device.ifname === names[6] ? 6 : 4,
    // A device with another identifier is not usable. The empty address differs from every desired address, so the
    // device is replaced.
    mac: data?.id === VXLAN_ID ? (device.address ?? '') : '',
    mtu: device.mtu ?? 0,
    local: data?.local6 === undefined ? undefined : canonicalAddress(data.local6),
    addresses: (device.addr_info ?? [])
      .filter(({ scope }) => scope === 'global')
      .map(({ local = '', prefixlen = 0 }) => `${local}/${prefixlen}`),
  };
}

function routeOf({ dst = '', type, dev, gateway, flags, metrics }: ListedRoute, width: number): PodRoute {
  return {
    destination: dst.includes('/') ? dst : `${dst}/${width}`,
    via:
      type === 'unreachable' || dev === undefined
        ? undefined
        : { link: dev, gateway: gateway ?? '', onLink: flags?.includes('onlink') === true },
    mtu: metrics?.find(({ mtu }) => mtu !== undefined)?.mtu ?? 0,
  };
}

interface Tools {
  readonly ip: string;
  readonly bridge: string;
  readonly protocol: number;
}

/** Applies changes in order. Consecutive changes for the same tool run in one process. */
async function apply(changes: readonly OverlayChange[], tools: Tools): Promise<void> {
  const runs: { tool: string; lines: string[] }[] = [];
  for (const change of changes) {
    const isForward = change.op === 'replace-forward' || change.op === 'delete-forward';
    const tool = isForward ? tools.bridge : tools.ip;
    const last = runs.at(-1);
    const lines = linesOf(change, tools.protocol);
    if (last?.tool === tool) last.lines.push(...lines);
    else runs.push({ tool, lines: [...lines] });
  }
  const complaints: string[] = [];
  for (const { tool, lines } of runs) {
    try {
      const { code, stderr } = await output(tool, ['-force', '-batch', '-'], `${lines.join('\n')}\n`);
      if (code !== 0) complaints.push(`${tool}: ${complaintOf(stderr, lines)}`);
    } catch (error) {
      complaints.push(messageOf(error));
    }
  }
  if (complaints[0] !== undefined) throw new RuntimeError('network', complaints[0]);
}

/** Error message with the line that caused it. Source: iproute2's `Command failed -:LINE`. */
function complaintOf(stderr: string, lines: readonly string[]): string {
  const at = /Command failed -:(\d+)/.exec(stderr)?.[1];
  const line = at === undefined ? undefined : lines[Number(at) - 1];
  return line === undefined ? firstLine(stderr) : `${firstLine(stderr)} (${line})`;
}

function linesOf(change: OverlayChange, protocol: number): readonly string[] {
  switch (change.op) {
    case 'add-link': {
      const { name, mac, local } = change.link;
      return [
        `link add ${name} address ${mac} type vxlan id ${VXLAN_ID} dstport ${VXLAN_PORT} nolearning${local === undefined ? '' : ` local ${local}`}`,
        ...linkLines(change.link),
      ];
    }
    case 'update-link':
      // New addresses are added first, because a link that loses its last address also loses its routes.
      return [
        ...linkLines(change.link),
        ...change.staleAddresses.map((address) => `addr del ${address} dev ${change.link.name}`),
      ];
    case 'delete-link':
      return [`link del ${change.name}`];
    case 'replace-neighbor':
      return [
        `neigh replace ${change.neighbor.address} lladdr ${change.neighbor.mac} dev ${change.neighbor.link} nud permanent`,
      ];
    case 'delete-neighbor':
      return [`neigh del ${change.neighbor.address} dev ${change.neighbor.link}`];
    case 'replace-forward':
      return [
        `fdb replace ${change.forward.mac} dev ${change.forward.link} dst ${change.forward.destination} self permanent`,
      ];
    case 'delete-forward':
      return [`fdb del ${change.forward.mac} dev ${change.forward.link} dst ${change.forward.destination} self`];
    case 'replace-route':
    case 'delete-route':
      return [routeLine(change.op === 'replace-route' ? 'replace' : 'del', change.route, protocol)];
  }
}

function linkLines({ name, mtu, addresses }: TunnelLink): string[] {
  return [
    `link set ${name} mtu ${mtu} up`,
    ...addresses.map((address) => `addr replace ${address} dev ${name}${address.includes(':') ? ' nodad' : ''}`),
  ];
}

function routeLine(verb: string, { destination, via, mtu }: PodRoute, protocol: number): string {
  const own = `proto ${protocol} metric ${METRIC}`;
  if (via === undefined) return `route ${verb} unreachable ${destination} ${own}`;
  const flags = `${via.onLink ? ' onlink' : ''}${mtu === 0 ? '' : ` mtu ${mtu}`}`;
  return `route ${verb} ${destination} via ${via.gateway} dev ${via.link} ${own}${flags}`;
}

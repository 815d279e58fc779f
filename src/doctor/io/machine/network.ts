/** Reads facts about links, routes, name resolution, ports and network paths of this machine. */
import { Resolver } from 'node:dns/promises';
import { readlink } from 'node:fs/promises';
import { endianness } from 'node:os';
import { join } from 'node:path';
import { textOf as addressText } from '../../../base/addresses/addresses.ts';
import type { DefaultRoute, Facts, LinkFacts, PeerPath, PortFacts } from '../../port.ts';
import { entriesOf, runProgram, textOf } from './read.ts';

const PROGRAM_MS = 3000;
const RTF_GATEWAY_UP = 0x1;
const MAX_PROCESSES = 4000;
const MAX_DESCRIPTORS = 4000;
const MAX_SERVERS = 6;
const MAX_PEERS = 32;
const ECHO_OVERHEAD = 28;

/** Reads the links with ip(8). Unlike /sys, it shows the links of this process's network namespace. */
export async function readLinks(): Promise<LinkFacts[]> {
  const { stdout } = await runProgram('ip', ['-j', 'addr', 'show'], PROGRAM_MS);
  const parsed: unknown = JSON.parse(stdout === '' ? '[]' : stdout);
  return (Array.isArray(parsed) ? parsed : []).slice(0, 1000).map((link) => ({
    name: String(link?.ifname ?? ''),
    mtu: Number(link?.mtu ?? 0),
    state: String(link?.operstate ?? '').toLowerCase(),
    duplicates: (Array.isArray(link?.addr_info) ? link.addr_info : [])
      .filter((each: { dadfailed?: unknown }) => each?.dadfailed === true)
      .map((each: { local?: unknown }) => String(each?.local ?? '')),
  }));
}

/** Default routes from /proc/net. The preferred routes come first. Source: proc_net(5). */
export async function readRoutes(machine: string): Promise<DefaultRoute[]> {
  const [v4, v6] = await Promise.all([
    textOf(join(machine, 'proc/self/net/route')),
    textOf(join(machine, 'proc/self/net/ipv6_route')),
  ]);
  const ipv4 = v4
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter(([, target, , , , , , mask]) => target === '00000000' && mask === '00000000')
    .map(
      ([link = '', , gateway = '', , , , metric]): DefaultRoute => ({
        family: 4,
        link,
        gateway: hexAddress(gateway),
        metric: Number(metric),
      }),
    );
  const ipv6 = v6
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([target, prefix, , , , , , , flags = '0', link]) => {
      const isDefault = target === '0'.repeat(32) && prefix === '00';
      return isDefault && link !== 'lo' && (Number.parseInt(flags, 16) & RTF_GATEWAY_UP) !== 0;
    })
    .map(
      ([, , , , gateway = '', metric = '0', , , , link = '']): DefaultRoute => ({
        family: 6,
        link,
        gateway: addressText(
          Array.from({ length: 8 }, (_, at) => Number.parseInt(gateway.slice(4 * at, 4 * at + 4), 16)),
        ),
        metric: Number.parseInt(metric, 16),
      }),
    );
  return [...ipv4, ...ipv6]
    .slice(0, 100)
    .sort((left, right) => left.family - right.family || left.metric - right.metric);
}

/** Converts an address of a table in /proc/net, which consists of 32-bit words in the byte order of the host. */
function hexAddress(hex: string): string {
  const bytes = (hex.match(/.{8}/g) ?? []).flatMap((word) => {
    const four = word.match(/../g)?.map((each) => Number.parseInt(each, 16)) ?? [];
    return endianness() === 'LE' ? four.reverse() : four;
  });
  if (bytes.length === 4) return bytes.join('.');
  return addressText(Array.from({ length: 8 }, (_, at) => ((bytes[2 * at] ?? 0) << 8) | (bytes[2 * at + 1] ?? 0)));
}

/** Queries the name servers of resolv.conf, and resolves the host name. */
export async function readResolution(machine: string, ownName: string): Promise<Facts['resolution']> {
  const text = await textOf(join(machine, 'etc/resolv.conf'));
  const addresses = [...text.matchAll(/^\s*nameserver\s+(\S+)/gm)].map(
    ([, address = '']) => address.split('%')[0] ?? '',
  );
  const [servers, ownAddresses] = await Promise.all([
    Promise.all(
      [...new Set(addresses)]
        .slice(0, MAX_SERVERS)
        .map(async (address) => ({ address, problem: await queryProblem(address, ownName) })),
    ),
    addressesOf(machine, ownName),
  ]);
  return { servers, ownName, ownAddresses };
}

/**
 * Problem with a name server; undefined if it responds. Any response suffices, because a server of a disconnected site
 * may know no names.
 */
async function queryProblem(address: string, name: string): Promise<string | undefined> {
  try {
    const resolver = new Resolver({ timeout: 1500, tries: 1 });
    resolver.setServers([address.includes(':') ? `[${address}]` : address]);
    await resolver.resolve4(name);
    return undefined;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    return /^(?:ETIMEOUT|ECONNREFUSED|ENETUNREACH|EHOSTUNREACH|ERR_INVALID_IP_ADDRESS|ECANCELLED)$/.test(code)
      ? code
      : undefined;
  }
}

async function addressesOf(machine: string, name: string): Promise<string[]> {
  const hosts = await textOf(join(machine, 'etc/hosts'));
  const listed = hosts
    .split('\n')
    .map((line) => line.replace(/#.*/, '').trim().split(/\s+/))
    .filter(([, ...names]) => names.includes(name))
    .map(([address = '']) => address);
  if (listed.length > 0 || machine !== '/') return listed;
  const { stdout } = await runProgram('getent', ['ahosts', name], PROGRAM_MS);
  return [...new Set(stdout.split('\n').flatMap((line) => line.split(' ')[0] || []))];
}

interface Listener {
  readonly protocol: 'tcp' | 'udp';
  readonly address: string;
  readonly port: number;
  readonly inode: string;
}

/**
 * Sockets that listen on the wanted ports, with their processes. `isOwn` decides by process ID and command whether a
 * process belongs to this host's components.
 */
export async function readListeners(
  machine: string,
  wanted: ReadonlySet<number>,
  isOwn: (pid: number, command: readonly string[]) => Promise<boolean>,
): Promise<PortFacts['listeners']> {
  const found: Listener[] = [];
  for (const file of ['tcp', 'tcp6', 'udp', 'udp6'])
    for (const line of (await textOf(join(machine, 'proc/self/net', file), 8 << 20)).split('\n').slice(1)) {
      const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
      const protocol = file.startsWith('tcp') ? 'tcp' : 'udp';
      const [hex = '', digits = ''] = local.split(':');
      const port = Number.parseInt(digits, 16);
      if (state === (protocol === 'tcp' ? '0A' : '07') && wanted.has(port))
        found.push({ protocol, port, address: hexAddress(hex), inode });
    }
  const owners = await ownersOf(machine, new Set(found.map(({ inode }) => inode)));
  return Promise.all(
    found.map(async ({ protocol, port, address, inode }) => {
      const pid = owners.get(inode);
      const command =
        pid === undefined ? [] : (await textOf(join(machine, 'proc', String(pid), 'cmdline'), 4096)).split('\0');
      const program = pid === undefined ? '' : (await textOf(join(machine, 'proc', String(pid), 'comm'), 64)).trim();
      return { protocol, address, port, pid, program, own: pid !== undefined && (await isOwn(pid, command)) };
    }),
  );
}

/** IDs of the processes that own the sockets, by inode of the socket. */
async function ownersOf(machine: string, inodes: ReadonlySet<string>): Promise<ReadonlyMap<string, number>> {
  const owners = new Map<string, number>();
  const pids = (await entriesOf(join(machine, 'proc'))).filter((name) => /^\d+$/.test(name)).slice(0, MAX_PROCESSES);
  for (const pid of pids) {
    if (owners.size === inodes.size) break;
    const descriptors = await entriesOf(join(machine, 'proc', pid, 'fd'));
    for (const fd of descriptors.slice(0, MAX_DESCRIPTORS)) {
      const target = await readlink(join(machine, 'proc', pid, 'fd', fd)).catch(() => '');
      const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
      if (inode !== undefined && inodes.has(inode) && !owners.has(inode)) owners.set(inode, Number(pid));
    }
  }
  return owners;
}

/** Sends echo requests of full size to each peer. Requires the ping of iputils, which can forbid fragmentation. */
export async function readPaths(
  peers: readonly { readonly name: string; readonly address: string }[],
  links: readonly LinkFacts[],
): Promise<PeerPath[]> {
  return Promise.all(
    peers.slice(0, MAX_PEERS).map(async ({ name, address }) => {
      const { stdout } = await runProgram('ip', ['-j', 'route', 'get', address], PROGRAM_MS);
      const parsed: unknown = JSON.parse(stdout === '' ? '[]' : stdout);
      const link = String((Array.isArray(parsed) ? parsed[0]?.dev : undefined) ?? '');
      const linkMtu = links.find((each) => each.name === link)?.mtu ?? 1500;
      const small = await echo(address, 0);
      const whole = small === true && !address.includes(':') ? await echo(address, linkMtu - ECHO_OVERHEAD) : small;
      return { name, address, link, linkMtu, small, whole };
    }),
  );
}

/** Whether an echo request is answered; undefined if there is no suitable program. */
async function echo(address: string, bytes: number): Promise<boolean | undefined> {
  try {
    const size = bytes === 0 ? [] : ['-M', 'do', '-s', String(bytes)];
    const { code, stderr } = await runProgram(
      'ping',
      ['-n', '-c', '2', '-i', '0.2', '-W', '1', ...size, address],
      PROGRAM_MS,
    );
    if (code > 1 && !/message too long|local error/i.test(stderr)) return undefined;
    return code === 0;
  } catch {
    return undefined;
  }
}

/**
 * Other hosts that use the address, found by address conflict detection (RFC 5227) with arping(8). Throws CodedError
 * 'absent' if the program does not exist.
 */
export async function readConflicts(address: string, link: string): Promise<Facts['conflicts']> {
  const { code, stdout } = await runProgram('arping', ['-D', '-c', '2', '-w', '2', '-I', link, address], PROGRAM_MS);
  const mac = /\[([0-9A-Fa-f:]{17})\]/.exec(stdout)?.[1];
  return code === 0 || mac === undefined ? [] : [{ address, link, mac }];
}

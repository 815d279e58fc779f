/**
 * Listening sockets of the host's own processes, whose traffic a host port would redirect. Source: proc_net(5),
 * /proc/net/tcp.
 */
import { readFile } from 'node:fs/promises';
import { isInNetwork } from '../../../../base/addresses/addresses.ts';
import type { PortMapping } from '../../../../runtime/port.ts';
import { isAnyAddress } from './filter.ts';

const LISTEN = '0A';
const UNCONNECTED = '07';
const LOOPBACK = /^127\./;
const MAPPED = '0000000000000000FFFF0000';

/**
 * Whether a process of the host listens on the mapping's port on an address that other hosts can reach. Sockets on
 * loopback or on service addresses do not count, because host ports never redirect their traffic.
 */
export async function isInUse(mapping: PortMapping, serviceCidrs: readonly string[]): Promise<boolean> {
  if (mapping.protocol === 'SCTP') return false;
  const name = mapping.protocol.toLowerCase();
  for (const file of [`/proc/net/${name}`, `/proc/net/${name}6`]) {
    if (listensOnPort(await readFile(file, 'utf8').catch(() => ''), mapping, serviceCidrs)) return true;
  }
  return false;
}

/** Whether a socket in `table`, the text of /proc/net/tcp, tcp6, udp or udp6, listens on the mapping's port. */
export function listensOnPort(
  table: string,
  { protocol, hostPort, hostIp }: PortMapping,
  serviceCidrs: readonly string[],
): boolean {
  const state = protocol === 'TCP' ? LISTEN : UNCONNECTED;
  const port = hostPort.toString(16).toUpperCase().padStart(4, '0');
  for (const line of table.split('\n')) {
    const [, local = '', , found] = line.trim().split(/\s+/);
    if (found !== state || !local.endsWith(`:${port}`)) continue;
    const address = addressOf(local.slice(0, -5));
    if (address === undefined || LOOPBACK.test(address) || serviceCidrs.some((cidr) => isInNetwork(address, cidr)))
      continue;
    if (isAnyAddress(address) || isAnyAddress(hostIp) || address === hostIp) return true;
  }
  return false;
}

/** Decodes an address of little-endian words; undefined if it is not an IPv4 or unspecified address. */
function addressOf(hex: string): string | undefined {
  if (/^0+$/.test(hex)) return '0.0.0.0';
  const word = hex.length === 8 ? hex : hex.startsWith(MAPPED) ? hex.slice(MAPPED.length) : undefined;
  return word
    ?.match(/../g)
    ?.map((byte) => Number.parseInt(byte, 16))
    .reverse()
    .join('.');
}

/** Ports on which other processes of this host listen. Source: proc_pid_net(5). */
import { readdir, readFile, readlink } from 'node:fs/promises';
import { endianness } from 'node:os';
import { textOf } from '../../base/addresses/addresses.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { ListeningPort } from '../../network/services/core/index.ts';
import type { ListeningPorts } from '../../network/services/index.ts';

const TABLES = [
  { file: 'tcp', protocol: 'TCP' },
  { file: 'tcp6', protocol: 'TCP' },
  { file: 'udp', protocol: 'UDP' },
  { file: 'udp6', protocol: 'UDP' },
] as const;
const LISTEN = '0A';
const UNCONNECTED = '07';
const DEFAULT_FIRST_EPHEMERAL = 32_768;

/**
 * Sockets of this process are omitted: it forwards Services through sockets, which would conflict with themselves.
 * `proc`: another directory than /proc in tests.
 */
export function listeningPorts(log: Log, proc = '/proc'): ListeningPorts {
  let last: readonly ListeningPort[] = [];
  return {
    async read() {
      try {
        last = await readPorts(proc);
      } catch (error) {
        log.warn('listening sockets not read; the last known ports stay reserved', { error: messageOf(error) });
      }
      return last;
    },
  };
}

async function readPorts(proc: string): Promise<readonly ListeningPort[]> {
  const own = await ownSockets(proc);
  const firstEphemeral = await readFile(`${proc}/sys/net/ipv4/ip_local_port_range`, 'utf8').then(
    (text) => Number(text.trim().split(/\s+/)[0]) || DEFAULT_FIRST_EPHEMERAL,
    () => DEFAULT_FIRST_EPHEMERAL,
  );
  const found = new Map<string, ListeningPort>();
  for (const { file, protocol } of TABLES) {
    // On a kernel without IPv6, these files do not exist.
    const text = await readFile(`${proc}/self/net/${file}`, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' && file.endsWith('6')) return '';
      throw error;
    });
    for (const line of text.split('\n').slice(1)) {
      const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
      if (state !== (protocol === 'TCP' ? LISTEN : UNCONNECTED) || own.has(inode)) continue;
      const [hex = '', digits = ''] = local.split(':');
      const port = Number.parseInt(digits, 16);
      // A socket of a UDP client looks like one of a server. Clients are recognized by their ephemeral ports and
      // omitted.
      if (!(port > 0) || (protocol === 'UDP' && port >= firstEphemeral)) continue;
      const address = addressOf(hex);
      if (address === 'loopback') continue;
      const socket = { protocol, port, ...(address === undefined ? {} : { address }) };
      found.set(JSON.stringify(socket), socket);
    }
  }
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, socket]) => socket);
}

/** Inodes of this process's sockets. */
async function ownSockets(proc: string): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (const fd of await readdir(`${proc}/self/fd`)) {
    const target = await readlink(`${proc}/self/fd/${fd}`).catch(() => '');
    const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
    if (inode !== undefined) found.add(inode);
  }
  return found;
}

/**
 * Address from its hexadecimal form; undefined for the wildcard address. Each 32-bit word is in the host's byte order.
 */
function addressOf(hex: string): string | undefined {
  const words = hex.match(/.{8}/g) ?? [];
  const bytes = words.flatMap((word) => {
    const four = word.match(/../g)?.map((each) => Number.parseInt(each, 16)) ?? [];
    return endianness() === 'LE' ? four.reverse() : four;
  });
  if (bytes.every((byte) => byte === 0)) return undefined;
  const isMapped = bytes.length === 16 && bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 255;
  const short = isMapped ? bytes.slice(12) : bytes;
  if (short.length === 4) {
    if (short.every((byte) => byte === 0)) return undefined;
    return short[0] === 127 ? 'loopback' : short.join('.');
  }
  if (short.slice(0, 15).every((byte) => byte === 0) && short[15] === 1) return 'loopback';
  const groups = Array.from({ length: 8 }, (_, at) => ((short[2 * at] ?? 0) << 8) | (short[2 * at + 1] ?? 0));
  return textOf(groups);
}

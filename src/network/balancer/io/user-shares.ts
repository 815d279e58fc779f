/**
 * Limits the connections of each local user through the balancer, so that a process without root cannot use all
 * connections of its host. Clients connect from loopback addresses of their choice, so only the user identifies a
 * client.
 */
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';

const ROOT = 0;
const ESTABLISHED = '01';
const MAPPED = '0000000000000000FFFF0000';
/** Minimum interval between two reads of the kernel's table, which contains all sockets of the host. */
const READ_GAP_MS = 50;

/** Maximum numbers of connections. Root and the user of this process have no maximum. */
export interface Shares {
  readonly ofUser: number;
  readonly ofAllUsers: number;
}

/** Returns texts in the format of /proc/net/tcp and tcp6. Rejects if they cannot be read. */
export type ReadTables = () => Promise<readonly string[]>;

export const readTables: ReadTables = () =>
  Promise.all(['/proc/net/tcp', '/proc/net/tcp6'].map((file) => readFile(file, 'utf8')));

/**
 * Users of the client sockets that are connected to `port` of a loopback address, by `address:port` of the client.
 * Source: proc_net(5), /proc/net/tcp.
 */
export function usersIn(tables: readonly string[], port: number): Map<string, number> {
  const users = new Map<string, number>();
  const end = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  for (const table of tables) {
    for (const line of table.split('\n')) {
      // Splitting only the lines of this port keeps the cost of a large table low.
      if (!line.includes(end)) continue;
      const [, local = '', remote = '', state, , , , uid] = line.trim().split(/\s+/);
      if (state !== ESTABLISHED || !remote.endsWith(end)) continue;
      const [client, server] = [loopbackOf(local.slice(0, -5)), loopbackOf(remote.slice(0, -5))];
      if (client === undefined || server === undefined) continue;
      users.set(`${client}:${Number.parseInt(local.slice(-4), 16)}`, Number(uid));
    }
  }
  return users;
}

/** Decodes an IPv4 loopback address of little-endian words; undefined for other addresses. */
function loopbackOf(hex: string): string | undefined {
  const word = hex.length === 8 ? hex : hex.startsWith(MAPPED) ? hex.slice(MAPPED.length) : '';
  if (!word.endsWith('7F')) return undefined;
  return [6, 4, 2, 0].map((at) => Number.parseInt(word.slice(at, at + 2), 16)).join('.');
}

interface Waiting {
  readonly client: Socket;
  readonly decide: (admitted: boolean) => void;
}

export class UserShares {
  readonly #shares: Shares;
  readonly #read: ReadTables;
  readonly #exempt: ReadonlySet<number>;
  #waiting: Waiting[] = [];
  #reading = false;

  constructor(shares: Shares, read: ReadTables = readTables) {
    this.#shares = shares;
    this.#read = read;
    this.#exempt = new Set([ROOT, process.getuid?.() ?? ROOT]);
  }

  /**
   * Whether the user of `client` may have one more connection to the socket's local port. Every client is admitted if
   * the kernel's table cannot be read.
   */
  admits(client: Socket): Promise<boolean> {
    return new Promise((decide) => {
      this.#waiting.push({ client, decide });
      if (!this.#reading) void this.#decideAll();
    });
  }

  async #decideAll(): Promise<void> {
    this.#reading = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      const port = batch.find(({ client }) => client.localPort !== undefined)?.client.localPort ?? 0;
      const users = await this.#read().then(
        (tables) => usersIn(tables, port),
        () => new Map<string, number>(),
      );
      this.#decide(batch, users);
      await new Promise((resolve) => setTimeout(resolve, READ_GAP_MS).unref());
    }
    this.#reading = false;
  }

  /**
   * Decides about a batch of clients. `users` already contains them, so each rejected client is subtracted before the
   * next one is checked.
   */
  #decide(batch: readonly Waiting[], users: ReadonlyMap<string, number>): void {
    const counts = new Map<number, number>();
    let all = 0;
    for (const uid of users.values()) {
      if (this.#exempt.has(uid)) continue;
      counts.set(uid, (counts.get(uid) ?? 0) + 1);
      all += 1;
    }
    for (const { client, decide } of batch) {
      const uid = users.get(`${client.remoteAddress ?? ''}:${client.remotePort ?? 0}`);
      const count = uid === undefined ? undefined : counts.get(uid);
      const isOver = count !== undefined && (count > this.#shares.ofUser || all > this.#shares.ofAllUsers);
      if (isOver && uid !== undefined) {
        counts.set(uid, count - 1);
        all -= 1;
      }
      decide(!isOver);
    }
  }
}

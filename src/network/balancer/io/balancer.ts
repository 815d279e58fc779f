/**
 * Balances TCP connections over several servers. The streams are not inspected, so TLS is between client and server.
 * The caller chooses the servers.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { CodedError } from '../../../base/errors.ts';
import { resetSocket } from '../../../wire/connections/reset.ts';
import type { BalancedListener, ListenRequest, Routing, TcpBalancing } from '../port.ts';
import { BalancedConnection } from './balanced-connection.ts';
import { awaitClientHello } from './client-hello.ts';
import { type Race, raceToConnect } from './connect-race.ts';
import type { ForwardedConnection, ListenerKeeper } from './keeper.ts';
import { type ReadTables, UserShares } from './user-shares.ts';

/** Limit for the connections of one host: kubelet, proxy, DNS, controllers and scheduler use a few dozen. */
const MAX_CONNECTIONS = 1_024;
/** Limit for connections whose client has not sent a client hello yet. Regular clients send the hello at once. */
const MAX_SILENT = 256;
const HELLO_MS = 10_000;
/** Time limit from the client hello until the client's first bytes after the server's response. */
const HANDSHAKE_MS = 30_000;
const TICK_MS = 100;
/** A client that waits this long for a response triggers a probe. */
const SILENCE_MS = 300;
/** A drained connection that is silent this long has no request in progress. */
const QUIET_MS = 100;
const DRAIN_MS = 10_000;

/** Silence between two requests after which a connection can be closed. */
const GAP_MS = 5;
const HAND_OVER_MS = 1_500;

export interface BalancerLimits {
  readonly maxConnections?: number;
  readonly maxSilent?: number;
  /** Time limit for a client hello. */
  readonly helloMs?: number;
  /** Time limit for the following handshake. */
  readonly handshakeMs?: number;
  /** Reads the kernel's tables of TCP sockets, from which the users of connections are determined. */
  readonly readTables?: ReadTables;
  /** Starts the process that keeps the port open during a restart. Undefined if there is none. */
  readonly keeper?: ListenerKeeper | undefined;
}

export function createTcpBalancing(limits: BalancerLimits = {}): TcpBalancing {
  return { listen: (request) => new BalancerServer(request.routing, limits).listen(request) };
}

export class BalancerServer implements BalancedListener {
  readonly #routing: Routing;
  readonly #maxConnections: number;
  readonly #maxSilent: number;
  readonly #helloMs: number;
  readonly #handshakeMs: number;
  /** Number of open connections above which the shares of local users are enforced. */
  readonly #maxOfUser: number;
  readonly #shares: UserShares;
  readonly #keeper: ListenerKeeper | undefined;
  readonly #server: Server;
  /** Source addresses of connections without a client hello, oldest first. */
  readonly #silent = new Map<Socket, string>();
  /** Connections whose user is being looked up. */
  readonly #checking = new Set<Socket>();
  readonly #connecting = new Map<Socket, Race>();
  /** Forwarded connections, oldest first. */
  readonly #connections = new Set<BalancedConnection>();
  #ticking: NodeJS.Timeout | undefined;
  port = 0;

  constructor(routing: Routing, limits: BalancerLimits) {
    this.#routing = routing;
    this.#maxConnections = limits.maxConnections ?? MAX_CONNECTIONS;
    this.#maxSilent = limits.maxSilent ?? MAX_SILENT;
    this.#helloMs = limits.helloMs ?? HELLO_MS;
    this.#handshakeMs = limits.handshakeMs ?? HANDSHAKE_MS;
    // A quarter of the connections is reserved for root: kubelet, controllers and scheduler.
    this.#maxOfUser = Math.floor(this.#maxConnections / 2);
    const shares = { ofUser: this.#maxOfUser, ofAllUsers: Math.floor((this.#maxConnections * 3) / 4) };
    this.#shares = new UserShares(shares, limits.readTables);
    this.#keeper = limits.keeper;
    this.#server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => this.#accept(client));
  }

  async listen({ address, port }: ListenRequest): Promise<BalancedListener> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error: NodeJS.ErrnoException) => {
        const code = error.code === 'EADDRINUSE' ? 'address-in-use' : 'listen';
        reject(new CodedError(code, `cannot listen on ${address}:${port}: ${error.message}`, { cause: error }));
      });
      // For a moment, the keeper of the previous host process may listen on the same port.
      this.#server.listen({ host: address, port, ...(port === 0 ? {} : { reusePort: true }) }, () => resolve());
    });
    this.#server.removeAllListeners('error');
    // If the process runs out of descriptors, the connection is lost and the listener continues.
    this.#server.on('error', () => {});
    const bound = this.#server.address();
    this.port = typeof bound === 'object' && bound !== null ? bound.port : port;
    return this;
  }

  /** Starts with a listening socket that another process has transferred. */
  async adopt(listening: Server): Promise<BalancedListener> {
    await new Promise<void>((resolve) => this.#server.listen(listening, () => resolve()));
    this.#server.on('error', () => {});
    return this;
  }

  async handOver(targets: readonly string[]): Promise<void> {
    const keeping = await this.#keeper?.keep(this.#server, targets);
    if (keeping !== undefined) {
      this.#server.close();
      for (const connection of this.#connections) {
        const sockets = connection.detach();
        if (sockets === undefined) continue;
        this.#connections.delete(connection);
        await keeping.carry({ target: connection.target, ...sockets });
      }
      await this.drain(HAND_OVER_MS, GAP_MS);
      keeping.end();
    }
    await this.close();
  }

  /** Takes over a connection that another process has transferred. */
  carry({ target, client, backend }: ForwardedConnection): void {
    this.#routing.opened(target);
    this.#join(target, client, backend).established = true;
  }

  /**
   * Stops accepting connections, and closes each connection that has no request in progress and was silent for `gapMs`.
   */
  async drain(limitMs: number, gapMs: number): Promise<void> {
    this.#server.close();
    const untilMs = performance.now() + limitMs;
    while (this.#size > 0 && performance.now() < untilMs) {
      for (const connection of this.#connections)
        if (!connection.awaiting && performance.now() - connection.sinceMs >= gapMs) connection.end();
      await new Promise((resolve) => setTimeout(resolve, gapMs));
    }
  }

  end(target: string, how: 'drain' | 'reset'): void {
    const nowMs = performance.now();
    for (const connection of this.#connections) {
      if (connection.target !== target) continue;
      if (how === 'reset') connection.reset();
      else connection.drainingMs ??= nowMs;
    }
    this.#watch();
  }

  keep(target: string): void {
    for (const connection of this.#connections) if (connection.target === target) connection.drainingMs = undefined;
  }

  resetFrom(isOwn: (address: string) => boolean): void {
    for (const connection of this.#connections) if (!isOwn(connection.sourceAddress)) connection.reset();
  }

  async close(): Promise<void> {
    clearInterval(this.#ticking);
    // The callback gets an error if the server is closed already.
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const client of [...this.#silent.keys(), ...this.#checking]) resetSocket(client);
    for (const [client, race] of this.#connecting) {
      race.cancel();
      resetSocket(client);
    }
    for (const connection of this.#connections) connection.reset();
    await closed;
  }

  get #size(): number {
    return this.#silent.size + this.#checking.size + this.#connecting.size + this.#connections.size;
  }

  #accept(client: Socket): void {
    if (this.#silent.size >= this.#maxSilent) this.#resetSilent();
    else if (this.#size >= this.#maxConnections && !this.#makeRoom()) {
      resetSocket(client);
      return;
    }
    this.#silent.set(client, client.remoteAddress ?? '');
    const onClose = (): void => void this.#silent.delete(client);
    client.once('close', onClose);
    awaitClientHello(client, this.#helloMs, () => {
      client.off('close', onClose);
      this.#silent.delete(client);
      if (this.#size < this.#maxOfUser) this.#forward(client);
      else void this.#forwardWithinShare(client);
    });
  }

  /** Resets the client if its user has more connections than its share. */
  async #forwardWithinShare(client: Socket): Promise<void> {
    const onError = (): void => {};
    client.on('error', onError);
    this.#checking.add(client);
    const isAdmitted = await this.#shares.admits(client);
    this.#checking.delete(client);
    client.off('error', onError);
    if (client.destroyed) return;
    if (isAdmitted) this.#forward(client);
    else resetSocket(client);
  }

  #forward(client: Socket): void {
    const race = raceToConnect(this.#routing);
    this.#connecting.set(client, race);
    const onGone = (): void => race.cancel();
    client.on('error', onGone);
    client.once('close', onGone);
    void race.winner.then((found) => {
      this.#connecting.delete(client);
      client.off('error', onGone);
      client.off('close', onGone);
      if (found === undefined || client.destroyed) {
        if (found !== undefined) {
          found.socket.destroy();
          this.#routing.closed(found.target);
        }
        resetSocket(client);
        return;
      }
      const connection = this.#join(found.target, client, found.socket);
      setTimeout(() => {
        if (!connection.established) connection.reset();
      }, this.#handshakeMs).unref();
    });
  }

  #join(target: string, client: Socket, backend: Socket): BalancedConnection {
    const connection: BalancedConnection = new BalancedConnection(
      target,
      { client, backend },
      {
        waiting: () => this.#watch(),
        failed: () => this.#routing.doubt(target),
        ended: () => {
          this.#connections.delete(connection);
          this.#routing.closed(target);
        },
      },
    );
    this.#connections.add(connection);
    client.resume();
    return connection;
  }

  #watch(): void {
    this.#ticking ??= setInterval(() => this.#tick(), TICK_MS).unref();
  }

  #tick(): void {
    const nowMs = performance.now();
    let watched = false;
    for (const connection of this.#connections) {
      const quietMs = nowMs - connection.sinceMs;
      if (connection.awaiting && !connection.reported && quietMs >= SILENCE_MS) {
        connection.reported = true;
        this.#routing.doubt(connection.target);
      }
      if (connection.drainingMs !== undefined) {
        const isQuiet = !connection.awaiting && quietMs >= QUIET_MS;
        if (isQuiet || nowMs - connection.drainingMs >= DRAIN_MS) connection.end();
      }
      watched ||= connection.watched;
    }
    if (watched) return;
    // Stop the timer while no connection needs it.
    clearInterval(this.#ticking);
    this.#ticking = undefined;
  }

  /**
   * Resets the oldest connection that has not completed a handshake, since opening such connections is cheap for an
   * attacker.
   */
  #makeRoom(): boolean {
    if (this.#silent.size > 0) {
      this.#resetSilent();
      return true;
    }
    for (const connection of this.#connections) {
      if (connection.established) continue;
      connection.reset();
      return true;
    }
    return false;
  }

  /** Resets a silent connection: the oldest one of the source address that has the most silent connections. */
  #resetSilent(): void {
    const counts = new Map<string, number>();
    for (const source of this.#silent.values()) counts.set(source, (counts.get(source) ?? 0) + 1);
    const [most] = [...counts].reduce((a, b) => (b[1] > a[1] ? b : a));
    for (const [client, source] of this.#silent) {
      if (source !== most) continue;
      this.#silent.delete(client);
      resetSocket(client);
      return;
    }
  }
}

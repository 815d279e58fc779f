/** Places a connection gate between the accepted sockets of a TLS server and their handshakes. */
import type { ConnectionGate, GatedConnection } from './gate.ts';

/** Used part of `net.Socket`. */
interface AcceptedSocket {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  readonly localAddress?: string | undefined;
  readonly bytesRead: number;
  readonly destroyed: boolean;
  on(event: 'error', listener: () => void): unknown;
  once(event: 'close', listener: () => void): unknown;
  destroy(): unknown;
}

/** Used part of `tls.Server` and its subclasses. */
interface TlsAcceptor {
  listeners(event: 'connection'): readonly unknown[];
  removeAllListeners(event: 'connection'): unknown;
  on(event: 'connection', listener: (socket: AcceptedSocket) => void): unknown;
  /** Same as the option of `net.createServer`. */
  pauseOnConnect?: boolean;
}

/** The server's object for a connection after its handshake. */
export interface ServedConnection {
  busy(): boolean;
  /** With the reason `idle`, open requests may finish; otherwise the socket is destroyed. */
  close(reason: string): void;
}

type SocketNames = Pick<AcceptedSocket, 'localAddress' | 'remoteAddress' | 'remotePort'>;

/** Creates a `Served` for each TLS socket when its handshake is complete. */
export class GatedServer<Socket extends SocketNames & object, Served extends ServedConnection> {
  readonly #gate: ConnectionGate;
  readonly #connections = new Map<string, GatedConnection>();
  readonly #accepted = new WeakMap<object, GatedConnection>();
  readonly #served = new Map<GatedConnection, Served>();
  readonly #bySocket = new WeakMap<object, Served>();
  readonly #make: (socket: Socket, gated: GatedConnection) => Served;

  /**
   * Delays handshakes of `server` until `gate` admits them. The server's existing listeners then perform the handshake.
   */
  constructor(server: TlsAcceptor, gate: ConnectionGate, make: (socket: Socket, gated: GatedConnection) => Served) {
    this.#gate = gate;
    this.#make = make;
    const listeners = server.listeners('connection') as readonly ((this: unknown, socket: AcceptedSocket) => void)[];
    server.removeAllListeners('connection');
    // Waiting sockets are not read, because each read would allocate memory.
    server.pauseOnConnect = true;
    server.on('connection', (socket) =>
      this.#accept(socket, () => {
        // A TLS server also applies `pauseOnConnect` to its TLS sockets, so the option is off while the listeners run.
        server.pauseOnConnect = false;
        for (const each of listeners) each.call(server, socket);
        server.pauseOnConnect = true;
      }),
    );
  }

  /**
   * Call first when a handshake is complete, with the accepted socket or its TLS socket. Returns undefined if the
   * connection is already closed.
   */
  secured(socket: Socket): Served | undefined {
    const gated = this.#accepted.get(socket) ?? this.#connections.get(keyOf(socket));
    if (gated === undefined || gated.closed) return undefined;
    const served = this.#make(socket, gated);
    this.#served.set(gated, served);
    this.#bySocket.set(socket, served);
    return served;
  }

  /** Object that was created for the socket. */
  of(socket: object): Served | undefined {
    return this.#bySocket.get(socket);
  }

  /** Like `of`, for an object that only has the socket's addresses. */
  named(socket: SocketNames): Served | undefined {
    const gated = this.#connections.get(keyOf(socket));
    return gated === undefined ? undefined : this.#served.get(gated);
  }

  #accept(socket: AcceptedSocket, begin: () => void): void {
    const key = keyOf(socket);
    const connection: GatedConnection = this.#gate.open(socket.remoteAddress ?? '', {
      begin: () => {
        if (!socket.destroyed) begin();
      },
      bytesRead: () => socket.bytesRead,
      busy: () => this.#served.get(connection)?.busy() ?? false,
      close: (reason) => {
        const served = this.#served.get(connection);
        if (served === undefined) socket.destroy();
        else served.close(reason);
      },
    });
    this.#accepted.set(socket, connection);
    this.#connections.set(key, connection);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => {
      if (this.#connections.get(key) === connection) this.#connections.delete(key);
      this.#served.delete(connection);
      connection.ended();
    });
  }
}

/**
 * Key for a TLS socket, which has no reference to its underlying socket. The key omits the local port, which is the
 * same for all connections.
 */
const keyOf = ({ localAddress, remoteAddress, remotePort }: SocketNames): string =>
  `${remoteAddress}|${remotePort}|${localAddress}`;

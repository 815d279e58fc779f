/** Puts a gate between a TLS server's accepted sockets and its handshakes. */
import type { ConnectionGate, GatedConnection } from './gate.ts';

/** What is used of `net.Socket`. */
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

/** What is used of `tls.Server` and those that extend it. */
interface TlsAcceptor {
  listeners(event: 'connection'): readonly unknown[];
  removeAllListeners(event: 'connection'): unknown;
  on(event: 'connection', listener: (socket: AcceptedSocket) => void): unknown;
  /** As the option of `net.createServer`. */
  pauseOnConnect?: boolean;
}

/** What the server knows of a connection once its handshake is complete. */
export interface ServedConnection {
  busy(): boolean;
  /** `idle` lets a peer that is not at fault finish; the socket is destroyed otherwise. */
  close(reason: string): void;
}

type SocketNames = Pick<AcceptedSocket, 'localAddress' | 'remoteAddress' | 'remotePort'>;

/** `Served` is made of each TLS socket when its handshake is complete. */
export class GatedServer<Socket extends SocketNames & object, Served extends ServedConnection> {
  readonly #gate: ConnectionGate;
  readonly #connections = new Map<string, GatedConnection>();
  readonly #accepted = new WeakMap<object, GatedConnection>();
  readonly #served = new Map<GatedConnection, Served>();
  readonly #bySocket = new WeakMap<object, Served>();
  readonly #make: (socket: Socket, gated: GatedConnection) => Served;

  /** `server` begins a handshake only when `gate` lets it; the listeners that it has now do the handshake. */
  constructor(server: TlsAcceptor, gate: ConnectionGate, make: (socket: Socket, gated: GatedConnection) => Served) {
    this.#gate = gate;
    this.#make = make;
    const listeners = server.listeners('connection') as readonly ((this: unknown, socket: AcceptedSocket) => void)[];
    server.removeAllListeners('connection');
    // What waits is not read: each read would keep a piece of memory of its own.
    server.pauseOnConnect = true;
    server.on('connection', (socket) =>
      this.#accept(socket, () => {
        // A TLS server takes the option for its own sockets too.
        server.pauseOnConnect = false;
        for (const each of listeners) each.call(server, socket);
        server.pauseOnConnect = true;
      }),
    );
  }

  /**
   * To be called first, with an accepted socket or the TLS socket made of it, when its handshake is complete.
   * Undefined: it is closed already.
   */
  secured(socket: Socket): Served | undefined {
    const gated = this.#accepted.get(socket) ?? this.#connections.get(keyOf(socket));
    if (gated === undefined || gated.closed) return undefined;
    const served = this.#make(socket, gated);
    this.#served.set(gated, served);
    this.#bySocket.set(socket, served);
    return served;
  }

  /** What was made of the socket. */
  of(socket: object): Served | undefined {
    return this.#bySocket.get(socket);
  }

  /** As `of`, for what only looks like the socket. */
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

/** For a TLS socket, which does not tell the socket it is made of. The port that is listened on is the same for all. */
const keyOf = ({ localAddress, remoteAddress, remotePort }: SocketNames): string =>
  `${remoteAddress}|${remotePort}|${localAddress}`;

/** Listening sockets that retry while their port is in use. During the retries the host runs without its router. */
import { createServer, type Server, type Socket } from 'node:net';
import type { Log } from '../../../base/log.ts';

const RETRY_MS = 5_000;

export class RetriedListener {
  readonly #server: Server;
  readonly #port: number;
  readonly #address: string;
  readonly #log: Log;
  readonly #sockets = new Set<Socket>();
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  #reported = false;

  constructor(port: number, address: string, log: Log, accept: (socket: Socket) => void) {
    this.#port = port;
    this.#address = address;
    this.#log = log;
    this.#server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      accept(socket);
    });
    this.#server.on('error', (error: NodeJS.ErrnoException) => this.#retry(error));
  }

  /** Starts to listen. Resolves after the first attempt, even if it failed. */
  start(): Promise<void> {
    return new Promise((resolve) => {
      const settled = (): void => {
        this.#server.off('listening', settled);
        this.#server.off('error', settled);
        resolve();
      };
      this.#server.once('listening', settled);
      this.#server.once('error', settled);
      this.#server.on('listening', () => this.#log.info('router listens', { port: this.port }));
      this.#listen();
    });
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : this.#port;
  }

  stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    for (const socket of this.#sockets) socket.destroy();
    return new Promise((resolve) => {
      if (this.#server.listening) this.#server.close(() => resolve());
      else resolve();
    });
  }

  #listen(): void {
    this.#server.listen({ port: this.#port, host: this.#address, backlog: 4096 });
  }

  #retry(error: NodeJS.ErrnoException): void {
    if (this.#stopped || this.#server.listening) {
      this.#log.warn('router listener failed', { port: this.#port, error: error.message });
      return;
    }
    if (!this.#reported)
      this.#log.warn('router port not available; retrying', { port: this.#port, error: error.code ?? error.message });
    this.#reported = true;
    this.#timer = setTimeout(() => this.#listen(), RETRY_MS).unref();
  }
}

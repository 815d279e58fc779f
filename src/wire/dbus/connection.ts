/** A D-Bus connection over a Unix socket. Source: D-Bus Specification 0.43, "Authentication Protocol". */
import { connect, type Socket } from 'node:net';
import { CodedError, ignore } from '../../base/errors.ts';
import { decodeMessage, type Message, Reader } from './dbus-messages.ts';

const MAX_GREETING_BYTES = 4_096;

export interface ConnectionOptions {
  /** Path of the socket. */
  readonly path: string;
  /** Name of the server in errors, for example `systemd`. */
  readonly server: string;
  onMessage(message: Message): void;
  /** Called once, when the connection is closed by either side or fails. */
  onClose(error: Error): void;
}

/** Errors have the code 'systemd'. */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #socket: Socket;
  readonly #authenticated = Promise.withResolvers<void>();
  /**
   * Messages queued until authentication is complete: systemd does not process data that it reads together with the
   * handshake until more data arrives. Undefined after authentication.
   */
  #unsent: Buffer[] | undefined = [];
  #received: Buffer = Buffer.alloc(0);
  #isClosed = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const { path, server } = options;
    this.#socket = connect(path);
    this.#socket.on('data', (part: Buffer) => this.#receive(part));
    this.#socket.on('error', (cause) => this.close(new CodedError('systemd', `${path}: ${cause.message}`, { cause })));
    this.#socket.on('close', () => this.close(new CodedError('systemd', `${path}: ${server} closed the connection`)));
    this.#authenticated.promise.catch(ignore('the error is passed to onClose'));
    // The server gets the user ID of this process from the kernel. AUTH EXTERNAL requires that the client also names
    // it, in hexadecimal.
    const uid = Buffer.from(String(process.geteuid?.() ?? 0)).toString('hex');
    this.#socket.write(`\0AUTH EXTERNAL ${uid}\r\nBEGIN\r\n`);
  }

  /** Resolves when the server has accepted this client; rejects if the connection closes before. */
  get authenticated(): Promise<void> {
    return this.#authenticated.promise;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  send(message: Buffer): void {
    if (this.#unsent === undefined) this.#socket.write(message);
    else this.#unsent.push(message);
  }

  close(error: Error): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.destroy();
    this.#authenticated.reject(error);
    this.#options.onClose(error);
  }

  #receive(part: Buffer): void {
    try {
      this.#received = this.#received.length === 0 ? part : Buffer.concat([this.#received, part]);
      if (this.#unsent !== undefined && !this.#readGreeting()) return;
      for (let next = decodeMessage(this.#received); next !== undefined; next = decodeMessage(this.#received)) {
        this.#received = this.#received.subarray(next.end);
        this.#options.onMessage(next.message);
      }
    } catch (error) {
      this.close(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** Reads the server's answer to the authentication. Returns false while it is incomplete. */
  #readGreeting(): boolean {
    const end = this.#received.indexOf('\r\n');
    if (end < 0) {
      if (this.#received.length > MAX_GREETING_BYTES)
        throw new CodedError('systemd', 'no D-Bus server is at this socket');
      return false;
    }
    const line = this.#received.toString('latin1', 0, end);
    if (!line.startsWith('OK '))
      throw new CodedError('systemd', `${this.#options.server} refuses the connection: ${line.slice(0, 100)}`);
    this.#received = this.#received.subarray(end + 2);
    for (const message of this.#unsent ?? []) this.#socket.write(message);
    this.#unsent = undefined;
    this.#authenticated.resolve();
    return true;
  }
}

/** Reason of an error message: its text, or its name if it has no text. */
export const reasonOf = ({ signature, body, errorName }: Message): string =>
  signature.startsWith('s') ? new Reader(body).string() : errorName;

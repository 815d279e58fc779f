/**
 * A client of the D-Bus system bus, limited to calls and signals of the login manager. Source: D-Bus Specification
 * 0.43, "Authentication Protocol" and "Message Bus Specification".
 */
import { connect, type Socket } from 'node:net';
import { CodedError, ignore } from '../../base/errors.ts';
import {
  decodeMessage,
  ERROR,
  encodeCall,
  METHOD_RETURN,
  type Message,
  Reader,
  SIGNAL,
  Writer,
} from './dbus-messages.ts';

const SOCKET = '/run/dbus/system_bus_socket';
const TIMEOUT_MS = 10_000;
const MAX_GREETING_BYTES = 4_096;
const BUS = 'org.freedesktop.DBus';

interface Answer {
  resolve(message: Message): void;
  reject(error: Error): void;
}

export interface SystemBusCall {
  readonly destination: string;
  readonly path: string;
  readonly interface: string;
  readonly member: string;
  /** All arguments are strings. */
  readonly arguments?: readonly string[];
}

/** One connection. Calls throw CodedError 'systemd'; all fail after the connection has closed. */
export class SystemBus {
  readonly #socket: Socket;
  readonly #answers = new Map<number, Answer>();
  readonly #lost = Promise.withResolvers<void>();
  readonly #onSignal: (signal: Message) => void;
  #received: Buffer = Buffer.alloc(0);
  #greeted = Promise.withResolvers<void>();
  #serial = 0;
  #error: Error | undefined;

  private constructor(path: string, onSignal: (signal: Message) => void) {
    this.#onSignal = onSignal;
    this.#socket = connect(path);
    this.#socket.on('data', (part: Buffer) => this.#receive(part));
    this.#socket.on('error', (error) => this.close(new CodedError('systemd', `${path}: ${error.message}`)));
    this.#socket.on('close', () => this.close(new CodedError('systemd', `${path}: the bus closed the connection`)));
    this.#greeted.promise.catch(ignore('callers get the error with which the bus was closed'));
    const uid = Buffer.from(String(process.geteuid?.() ?? 0)).toString('hex');
    this.#socket.write(`\0AUTH EXTERNAL ${uid}\r\n`);
  }

  /**
   * `onSignal` is called for every signal that `match` subscribed to, and for every signal sent directly to this
   * connection.
   */
  static async open(path: string = SOCKET, onSignal: (signal: Message) => void = () => {}): Promise<SystemBus> {
    const bus = new SystemBus(path, onSignal);
    try {
      await within(bus.#greeted.promise, 'authentication');
      await bus.call({ destination: BUS, path: '/org/freedesktop/DBus', interface: BUS, member: 'Hello' });
    } catch (error) {
      bus.close();
      throw error;
    }
    return bus;
  }

  /** Resolves when the connection has closed. */
  get lost(): Promise<void> {
    return this.#lost.promise;
  }

  /** Returns a reader of the response's body. */
  async call(call: SystemBusCall): Promise<Reader> {
    if (this.#error !== undefined) throw this.#error;
    const body = new Writer();
    const given = call.arguments ?? [];
    for (const each of given) body.string(each);
    this.#serial += 1;
    const serial = this.#serial;
    const { promise, resolve, reject } = Promise.withResolvers<Message>();
    this.#answers.set(serial, { resolve, reject });
    this.#socket.write(encodeCall({ ...call, serial, signature: 's'.repeat(given.length), body: body.result }));
    try {
      const answer = await within(promise, call.member);
      return new Reader(answer.body);
    } finally {
      this.#answers.delete(serial);
    }
  }

  async match(rule: string): Promise<void> {
    await this.call({
      destination: BUS,
      path: '/org/freedesktop/DBus',
      interface: BUS,
      member: 'AddMatch',
      arguments: [rule],
    });
  }

  /** Connection that currently owns this name, which is the sender of its signals. */
  async owner(name: string): Promise<string> {
    const call = { destination: BUS, path: '/org/freedesktop/DBus', interface: BUS, member: 'GetNameOwner' };
    return (await this.call({ ...call, arguments: [name] })).string();
  }

  close(error: Error = new CodedError('systemd', 'the connection to the bus was closed')): void {
    if (this.#error !== undefined) return;
    this.#error = error;
    this.#socket.destroy();
    this.#greeted.reject(error);
    for (const answer of this.#answers.values()) answer.reject(error);
    this.#lost.resolve();
  }

  #receive(part: Buffer): void {
    try {
      this.#received = Buffer.concat([this.#received, part]);
      if (this.#serial === 0 && !this.#readGreeting()) return;
      for (let next = decodeMessage(this.#received); next !== undefined; next = decodeMessage(this.#received)) {
        this.#received = this.#received.subarray(next.end);
        this.#handle(next.message);
      }
    } catch (error) {
      this.close(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #readGreeting(): boolean {
    const end = this.#received.indexOf('\r\n');
    if (end < 0) {
      if (this.#received.length > MAX_GREETING_BYTES)
        throw new CodedError('systemd', 'no D-Bus server is at this socket');
      return false;
    }
    const line = this.#received.toString('latin1', 0, end);
    this.#received = this.#received.subarray(end + 2);
    if (!line.startsWith('OK '))
      throw new CodedError('systemd', `the bus refuses the connection: ${line.slice(0, 100)}`);
    this.#socket.write('BEGIN\r\n');
    this.#greeted.resolve();
    return this.#received.length > 0;
  }

  #handle(message: Message): void {
    if (message.type === SIGNAL) this.#onSignal(message);
    else if (message.type === METHOD_RETURN) this.#answers.get(message.replySerial)?.resolve(message);
    else if (message.type === ERROR) {
      const reason = message.signature.startsWith('s') ? new Reader(message.body).string() : message.errorName;
      this.#answers.get(message.replySerial)?.reject(new CodedError('systemd', reason));
    }
  }
}

async function within<T>(work: Promise<T>, what: string): Promise<T> {
  const late = Promise.withResolvers<never>();
  const message = `${what}: the bus gave no answer within ${TIMEOUT_MS / 1000} s`;
  const timer = setTimeout(() => late.reject(new CodedError('systemd', message)), TIMEOUT_MS);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * A client of the D-Bus system bus, limited to calls and signals of the login manager. Source: D-Bus Specification
 * 0.43, "Message Bus Specification".
 */
import { CodedError } from '../../base/errors.ts';
import { Connection, reasonOf } from './connection.ts';
import { ERROR, encodeCall, METHOD_RETURN, type Message, Reader, SIGNAL, Writer } from './dbus-messages.ts';

const SOCKET = '/run/dbus/system_bus_socket';
const TIMEOUT_MS = 10_000;
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
  readonly #connection: Connection;
  readonly #answers = new Map<number, Answer>();
  readonly #lost = Promise.withResolvers<void>();
  readonly #onSignal: (signal: Message) => void;
  #serial = 0;
  #error: Error | undefined;

  private constructor(path: string, onSignal: (signal: Message) => void) {
    this.#onSignal = onSignal;
    this.#connection = new Connection({
      path,
      server: 'the bus',
      onMessage: (message) => this.#handle(message),
      onClose: (error) => this.#onClose(error),
    });
  }

  /**
   * `onSignal` is called for every signal that `match` subscribed to, and for every signal sent directly to this
   * connection.
   */
  static async open(path: string = SOCKET, onSignal: (signal: Message) => void = () => {}): Promise<SystemBus> {
    const bus = new SystemBus(path, onSignal);
    try {
      await within(bus.#connection.authenticated, 'authentication');
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
    this.#connection.send(encodeCall({ ...call, serial, signature: 's'.repeat(given.length), body: body.result }));
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

  close(): void {
    this.#connection.close(new CodedError('systemd', 'the connection to the bus was closed'));
  }

  #onClose(error: Error): void {
    this.#error = error;
    for (const answer of this.#answers.values()) answer.reject(error);
    this.#lost.resolve();
  }

  #handle(message: Message): void {
    if (message.type === SIGNAL) this.#onSignal(message);
    else if (message.type === METHOD_RETURN) this.#answers.get(message.replySerial)?.resolve(message);
    else if (message.type === ERROR)
      this.#answers.get(message.replySerial)?.reject(new CodedError('systemd', reasonOf(message)));
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

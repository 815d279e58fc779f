/**
 * Calls to the service manager over its private socket, where it accepts D-Bus without a bus daemon, from root only. A
 * call takes about 1 ms, while a `systemctl` process takes about 15 ms. The connection is opened on demand and closed
 * when idle, because an open connection receives every signal of every unit. Source: org.freedesktop.systemd1(5); D-Bus
 * Specification 0.43, "Authentication Protocol".
 */
import { connect, type Socket } from 'node:net';
import { CodedError } from '../../base/errors.ts';
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

const SOCKET = '/run/systemd/private';
const DESTINATION = 'org.freedesktop.systemd1';
const PATH = '/org/freedesktop/systemd1';
const MANAGER = 'org.freedesktop.systemd1.Manager';
/** Starting or stopping a slice is immediate; the limit allows for a slow or busy host. */
const TIMEOUT_MS = 30_000;
const IDLE_MS = 1_000;
const MAX_GREETING_BYTES = 4_096;

/** Error response of systemd. `errorName` is the D-Bus error name, such as `org.freedesktop.systemd1.UnitExists`. */
export class ManagerError extends CodedError {
  readonly errorName: string;

  constructor(errorName: string, message: string) {
    super('systemd', message);
    this.errorName = errorName;
  }
}

interface Pending {
  readonly member: string;
  /** Reads the response while it is being received, before any later message. */
  answered(body: Reader): void;
  failed(error: Error): void;
}

export interface ManagerBus {
  /**
   * Calls a method of the manager. Throws ManagerError with systemd's message, or CodedError 'systemd' if it is
   * unreachable.
   */
  call(member: string, signature: string, write: (body: Writer) => void): Promise<void>;
  /**
   * Calls a method that queues a job, and waits for the job. Throws CodedError 'systemd' if its result is not `done`.
   */
  job(member: string, signature: string, write: (body: Writer) => void): Promise<void>;
  /** A string property of the manager. */
  property(name: string): Promise<string>;
}

export function createManagerBus(path: string = SOCKET): ManagerBus {
  let connection: Connection | undefined;
  const call = <T>(
    target: string,
    member: string,
    signature: string,
    write: (body: Writer) => void,
    read: (body: Reader, open: Connection) => T | Promise<T>,
  ): Promise<T> => {
    if (connection === undefined || connection.closed) connection = new Connection(path);
    return connection.call(target, member, signature, write, read);
  };
  return {
    call: (member, signature, write) => call(MANAGER, member, signature, write, () => undefined),
    job: (member, signature, write) =>
      call(MANAGER, member, signature, write, (body, open) => open.jobEnded(body.string(), member)),
    property: (name) =>
      call(
        'org.freedesktop.DBus.Properties',
        'Get',
        'ss',
        (body) => {
          body.string(MANAGER);
          body.string(name);
        },
        (body) => {
          if (body.signature() !== 's') throw new CodedError('systemd', `the property ${name} is not a string`);
          return body.string();
        },
      ),
  };
}

class Connection {
  closed = false;
  private readonly socket: Socket;
  /** Serial number by call. */
  private readonly calls = new Map<Pending, number>();
  /** Job by call. Concurrent calls for one unit may get the same job. */
  private readonly jobs = new Map<Pending, string>();
  private received: Buffer = Buffer.alloc(0);
  private greeted = false;
  /**
   * Messages queued until the handshake is complete: systemd does not process data that it reads together with the
   * handshake until more data arrives.
   */
  private unsent: Buffer[] = [];
  private serial = 0;
  private idle: NodeJS.Timeout | undefined;

  constructor(path: string) {
    this.socket = connect(path);
    this.socket.on('data', (part: Buffer) => this.receive(part));
    this.socket.on('error', (error) =>
      this.close(new CodedError('systemd', `${path}: ${error.message}`, { cause: error })),
    );
    this.socket.on('close', () => this.close(new CodedError('systemd', `${path}: systemd closed the connection`)));
    // systemd gets the user ID of this process from the kernel. AUTH EXTERNAL requires that the client also names it,
    // in hexadecimal.
    const uid = Buffer.from(String(process.geteuid?.() ?? 0)).toString('hex');
    this.socket.write(`\0AUTH EXTERNAL ${uid}\r\nBEGIN\r\n`);
  }

  call<T>(
    target: string,
    member: string,
    signature: string,
    write: (body: Writer) => void,
    read: (body: Reader, open: Connection) => T | Promise<T>,
  ): Promise<T> {
    const body = new Writer();
    write(body);
    this.serial += 1;
    const { serial } = this;
    const answer = this.expect(this.calls, serial, member, (reader) => read(reader, this));
    this.send(
      encodeCall({
        serial,
        destination: DESTINATION,
        path: PATH,
        interface: target,
        member,
        signature,
        body: body.result,
      }),
    );
    return answer;
  }

  private send(message: Buffer): void {
    if (this.greeted) this.socket.write(message);
    else this.unsent.push(message);
  }

  /** `job` is the object path in the response to the call. */
  jobEnded(job: string, member: string): Promise<void> {
    return this.expect(this.jobs, job, member, (body) => {
      const result = body.string();
      if (result !== 'done') throw new CodedError('systemd', `${member}: the job ended as ${result}`);
    });
  }

  private expect<T, Key>(
    expected: Map<Pending, Key>,
    key: Key,
    member: string,
    read: (body: Reader) => T | Promise<T>,
  ): Promise<T> {
    clearTimeout(this.idle);
    return new Promise<T>((resolve, reject) => {
      const timer = setTimeout(() => {
        expected.delete(entry);
        reject(new CodedError('systemd', `${member}: systemd gave no answer within ${TIMEOUT_MS / 1000} s`));
        this.rest();
      }, TIMEOUT_MS);
      const settle = (act: () => void): void => {
        clearTimeout(timer);
        expected.delete(entry);
        act();
        this.rest();
      };
      const entry: Pending = {
        member,
        answered: (body) =>
          settle(() => {
            try {
              resolve(read(body));
            } catch (error) {
              reject(error);
            }
          }),
        failed: (error) => settle(() => reject(error)),
      };
      expected.set(entry, key);
    });
  }

  private receive(part: Buffer): void {
    try {
      this.received = this.received.length === 0 ? part : Buffer.concat([this.received, part]);
      if (!this.greeted && !this.readGreeting()) return;
      for (;;) {
        const next = decodeMessage(this.received);
        if (next === undefined) return;
        this.received = this.received.subarray(next.end);
        this.handle(next.message);
      }
    } catch (error) {
      this.close(error instanceof Error ? error : new Error(String(error)));
    }
  }

  private readGreeting(): boolean {
    const end = this.received.indexOf('\r\n');
    if (end < 0) {
      if (this.received.length > MAX_GREETING_BYTES)
        throw new CodedError('systemd', 'no D-Bus server is at this socket');
      return false;
    }
    const line = this.received.toString('latin1', 0, end);
    if (!line.startsWith('OK '))
      throw new CodedError('systemd', `systemd refuses the connection: ${line.slice(0, 100)}`);
    this.received = this.received.subarray(end + 2);
    this.greeted = true;
    for (const message of this.unsent) this.socket.write(message);
    this.unsent = [];
    return true;
  }

  private handle(message: Message): void {
    if (message.type === METHOD_RETURN) {
      for (const call of waitingFor(this.calls, message.replySerial)) call.answered(new Reader(message.body));
    } else if (message.type === ERROR) {
      const reason = message.signature.startsWith('s') ? new Reader(message.body).string() : message.errorName;
      for (const call of waitingFor(this.calls, message.replySerial))
        call.failed(new ManagerError(message.errorName, `${call.member}: ${reason}`));
    } else if (message.type === SIGNAL && message.member === 'JobRemoved' && message.signature === 'uoss') {
      const body = new Reader(message.body);
      body.uint32();
      const job = body.string();
      // Skip the unit's name before the result.
      body.string();
      for (const waiter of waitingFor(this.jobs, job)) waiter.answered(new Reader(message.body, body.position));
    }
  }

  /** Lets the process exit while no call is pending, and schedules closing the socket. */
  private rest(): void {
    if (this.closed || this.calls.size > 0 || this.jobs.size > 0) return;
    clearTimeout(this.idle);
    this.idle = setTimeout(() => this.close(new CodedError('systemd', 'the connection was idle')), IDLE_MS).unref();
  }

  private close(error: Error): void {
    if (this.closed) return;
    this.closed = true;
    clearTimeout(this.idle);
    this.socket.destroy();
    for (const each of [...this.calls.keys(), ...this.jobs.keys()]) each.failed(error);
  }
}

function waitingFor<Key>(expected: ReadonlyMap<Pending, Key>, key: Key): Pending[] {
  return [...expected].flatMap(([pending, wanted]) => (wanted === key ? [pending] : []));
}

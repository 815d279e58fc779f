/**
 * Calls to the service manager over its private socket, where it accepts D-Bus without a bus daemon, from root only. A
 * call takes about 1 ms, while a `systemctl` process takes about 15 ms. The connection is opened on demand and closed
 * when idle, because an open connection receives every signal of every unit. Source: org.freedesktop.systemd1(5).
 */
import { CodedError } from '../../base/errors.ts';
import { Connection, reasonOf } from './connection.ts';
import { ERROR, encodeCall, METHOD_RETURN, type Message, Reader, SIGNAL, Writer } from './dbus-messages.ts';

const SOCKET = '/run/systemd/private';
const DESTINATION = 'org.freedesktop.systemd1';
const PATH = '/org/freedesktop/systemd1';
const MANAGER = 'org.freedesktop.systemd1.Manager';
/** Starting or stopping a slice is immediate; the limit allows for a slow or busy host. */
const TIMEOUT_MS = 30_000;
const IDLE_MS = 1_000;

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
  let calls: ManagerCalls | undefined;
  const call = <T>(
    target: string,
    member: string,
    signature: string,
    write: (body: Writer) => void,
    read: (body: Reader, open: ManagerCalls) => T | Promise<T>,
  ): Promise<T> => {
    if (calls === undefined || calls.isClosed) calls = new ManagerCalls(path);
    return calls.call(target, member, signature, write, read);
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

/** Calls over one connection. */
class ManagerCalls {
  readonly #connection: Connection;
  /** Serial number by call. */
  readonly #calls = new Map<Pending, number>();
  /** Job by call. Concurrent calls for one unit may get the same job. */
  readonly #jobs = new Map<Pending, string>();
  #serial = 0;
  #idle: NodeJS.Timeout | undefined;

  constructor(path: string) {
    this.#connection = new Connection({
      path,
      server: 'systemd',
      onMessage: (message) => this.#handle(message),
      onClose: (error) => this.#onClose(error),
    });
  }

  get isClosed(): boolean {
    return this.#connection.isClosed;
  }

  call<T>(
    target: string,
    member: string,
    signature: string,
    write: (body: Writer) => void,
    read: (body: Reader, open: ManagerCalls) => T | Promise<T>,
  ): Promise<T> {
    const body = new Writer();
    write(body);
    this.#serial += 1;
    const serial = this.#serial;
    const answer = this.#expect(this.#calls, serial, member, (reader) => read(reader, this));
    this.#connection.send(
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

  /** `job` is the object path in the response to the call. */
  jobEnded(job: string, member: string): Promise<void> {
    return this.#expect(this.#jobs, job, member, (body) => {
      const result = body.string();
      if (result !== 'done') throw new CodedError('systemd', `${member}: the job ended as ${result}`);
    });
  }

  #expect<T, Key>(
    expected: Map<Pending, Key>,
    key: Key,
    member: string,
    read: (body: Reader) => T | Promise<T>,
  ): Promise<T> {
    clearTimeout(this.#idle);
    return new Promise<T>((resolve, reject) => {
      const timer = setTimeout(() => {
        expected.delete(entry);
        reject(new CodedError('systemd', `${member}: systemd gave no answer within ${TIMEOUT_MS / 1000} s`));
        this.#rest();
      }, TIMEOUT_MS);
      const settle = (act: () => void): void => {
        clearTimeout(timer);
        expected.delete(entry);
        act();
        this.#rest();
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

  #handle(message: Message): void {
    if (message.type === METHOD_RETURN) {
      for (const call of waitingFor(this.#calls, message.replySerial)) call.answered(new Reader(message.body));
    } else if (message.type === ERROR) {
      const reason = reasonOf(message);
      for (const call of waitingFor(this.#calls, message.replySerial))
        call.failed(new ManagerError(message.errorName, `${call.member}: ${reason}`));
    } else if (message.type === SIGNAL && message.member === 'JobRemoved' && message.signature === 'uoss') {
      const body = new Reader(message.body);
      body.uint32();
      const job = body.string();
      // Skip the unit's name before the result.
      body.string();
      for (const waiter of waitingFor(this.#jobs, job)) waiter.answered(new Reader(message.body, body.position));
    }
  }

  /** Lets the process exit while no call is pending, and schedules closing the socket. */
  #rest(): void {
    if (this.isClosed || this.#calls.size > 0 || this.#jobs.size > 0) return;
    clearTimeout(this.#idle);
    const close = (): void => this.#connection.close(new CodedError('systemd', 'the connection was idle'));
    this.#idle = setTimeout(close, IDLE_MS).unref();
  }

  #onClose(error: Error): void {
    clearTimeout(this.#idle);
    for (const each of [...this.#calls.keys(), ...this.#jobs.keys()]) each.failed(error);
  }
}

function waitingFor<Key>(expected: ReadonlyMap<Pending, Key>, key: Key): Pending[] {
  return [...expected].flatMap(([pending, wanted]) => (wanted === key ? [pending] : []));
}

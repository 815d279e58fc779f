/**
 * Commands in containers over a WebSocket with the channels of `v5.channel.k8s.io`: the first byte of a message is the
 * channel. Source: KEP-4006.
 */
import { query } from '../../client/resource-path.ts';

export const EXEC_PROTOCOLS = ['v5.channel.k8s.io'];
const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const;
/** Input that waits in the socket beyond this is refused, so that a paste cannot fill the memory. */
const MAX_BUFFERED = 4 << 20;

export interface ExecTarget {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly command: readonly string[];
  readonly tty: boolean;
}

export function execPath({ namespace, pod, container, command, tty }: ExecTarget): string {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}/exec`;
  const flags = query({
    container,
    stdin: true,
    stdout: true,
    stderr: tty ? undefined : true,
    tty: tty ? true : undefined,
  });
  return path + flags + command.map((argument) => `&command=${encodeURIComponent(argument)}`).join('');
}

/** The parts of a WebSocket that are used. */
export interface Socket {
  binaryType: string;
  readonly readyState: number;
  readonly bufferedAmount: number;
  send(data: Uint8Array<ArrayBuffer>): void;
  close(): void;
  addEventListener(type: 'open' | 'close' | 'error', listener: () => void): void;
  addEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void;
}

export interface ExecEvents {
  onOpen(): void;
  /** Output; standard output and standard error of a terminal are one stream. */
  onOutput(bytes: Uint8Array, stream: 'stdout' | 'stderr'): void;
  /** The end, once. `message` is '' for a command with exit code 0. */
  onEnd(message: string, exitCode: number | undefined): void;
}

const OPEN = 1;

export class ExecSession {
  readonly #socket: Socket;
  readonly #events: ExecEvents;
  #outcome: { readonly message: string; readonly exitCode: number | undefined } | undefined;
  #hasEnded = false;
  #wasOpen = false;

  constructor(socket: Socket, events: ExecEvents) {
    this.#socket = socket;
    this.#events = events;
    socket.binaryType = 'arraybuffer';
    socket.addEventListener('open', () => {
      this.#wasOpen = true;
      events.onOpen();
    });
    socket.addEventListener('message', ({ data }) => this.#receive(data));
    socket.addEventListener('close', () => this.#end());
  }

  /** Returns false if the input was refused because the connection is closed or too slow. */
  write(text: string): boolean {
    return this.#send(CHANNEL.stdin, new TextEncoder().encode(text));
  }

  /** Ends the input. */
  endInput(): void {
    this.#send(CHANNEL.close, Uint8Array.of(CHANNEL.stdin));
  }

  resize(columns: number, rows: number): void {
    this.#send(CHANNEL.resize, new TextEncoder().encode(JSON.stringify({ Width: columns, Height: rows })));
  }

  close(): void {
    this.#socket.close();
  }

  #send(channel: number, bytes: Uint8Array): boolean {
    if (this.#socket.readyState !== OPEN || this.#socket.bufferedAmount > MAX_BUFFERED) return false;
    const message = new Uint8Array(bytes.length + 1);
    message[0] = channel;
    message.set(bytes, 1);
    this.#socket.send(message);
    return true;
  }

  #receive(data: unknown): void {
    if (!(data instanceof ArrayBuffer)) return;
    const message = new Uint8Array(data);
    const [channel] = message;
    const bytes = message.subarray(1);
    if (channel === CHANNEL.stdout) this.#events.onOutput(bytes, 'stdout');
    else if (channel === CHANNEL.stderr) this.#events.onOutput(bytes, 'stderr');
    else if (channel === CHANNEL.error) this.#outcome = outcomeOf(new TextDecoder().decode(bytes));
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const closed = this.#wasOpen ? 'the connection was closed' : 'the API server refused the connection';
    const { message, exitCode } = this.#outcome ?? { message: closed, exitCode: undefined };
    this.#events.onEnd(message, exitCode);
  }
}

/** The Status on the error channel. */
function outcomeOf(text: string): { readonly message: string; readonly exitCode: number | undefined } {
  try {
    const parsed: unknown = JSON.parse(text);
    const status = parsed as {
      readonly status?: string;
      readonly message?: string;
      readonly details?: { readonly causes?: readonly { readonly reason?: string; readonly message?: string }[] };
    };
    if (status.status === 'Success') return { message: '', exitCode: 0 };
    const code = status.details?.causes?.find(({ reason }) => reason === 'ExitCode')?.message;
    return { message: status.message ?? text, exitCode: code === undefined ? undefined : Number(code) };
  } catch {
    return { message: text, exitCode: undefined };
  }
}

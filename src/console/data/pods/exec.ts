/**
 * Runs commands in containers over a WebSocket with the subprotocol `v5.channel.k8s.io`, in which the first byte of a
 * message is the channel. Source: KEP-4006.
 */
import { query } from '../../../client/resource-path.ts';
import { sanitizeText } from '../plain-text.ts';

export const EXEC_PROTOCOLS = ['v5.channel.k8s.io'];
const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const;
/**
 * Maximum size of input that waits in the socket. Further input is rejected, so that a paste cannot fill the memory.
 */
const MAX_BUFFERED = 4 << 20;

export interface ExecTarget {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly command: readonly string[];
  readonly tty: boolean;
  /** Whether the command gets standard input. Default: true. */
  readonly stdin?: boolean;
}

const podPath = (namespace: string, pod: string, subresource: string): string =>
  `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}/${subresource}`;

export function execPath({ namespace, pod, container, command, tty, stdin = true }: ExecTarget): string {
  const flags = query({
    container,
    stdin: stdin ? true : undefined,
    stdout: true,
    stderr: tty ? undefined : true,
    tty: tty ? true : undefined,
  });
  return (
    podPath(namespace, pod, 'exec') +
    flags +
    command.map((argument) => `&command=${encodeURIComponent(argument)}`).join('')
  );
}

/** Path that attaches a terminal to the main process of a container. */
export const attachPath = (namespace: string, pod: string, container: string): string =>
  podPath(namespace, pod, 'attach') + query({ container, stdin: true, stdout: true, tty: true });

/** The subset of WebSocket that is used. */
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
  /** Called with output. With a terminal, standard output and standard error are one stream. */
  onOutput(bytes: Uint8Array, stream: 'stdout' | 'stderr'): void;
  /** Called once at the end. `message` is '' for a command with exit code 0. */
  onEnd(message: string, exitCode: number | undefined): void;
}

const OPEN = 1;
const MAX_ERROR_LENGTH = 2_000;

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

  /** Sends input. Returns false if it was rejected, because the connection is closed or too slow. */
  write(text: string): boolean {
    return this.#send(CHANNEL.stdin, new TextEncoder().encode(text));
  }

  /** Like `write`, for bytes. */
  writeBytes(bytes: Uint8Array): boolean {
    return this.#send(CHANNEL.stdin, bytes);
  }

  get isOpen(): boolean {
    return this.#socket.readyState === OPEN;
  }

  /** Closes the standard input of the command. */
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

/** Parses the Status on the error channel. */
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

/** More input is read from its source only when less than this waits in the socket. */
const RESUME_BELOW = 1 << 20;
const BUFFER_CHECK_MS = 20;
/** Maximum size of output that waits for its consumer, because a WebSocket has no flow control. */
const MAX_WAITING = 64 << 20;

interface Streams {
  readonly input?: AsyncIterable<Uint8Array>;
  readonly onOutput?: (bytes: Uint8Array) => void | Promise<void>;
  readonly signal: AbortSignal;
}

/** Runs a command without a terminal. Rejects with the end of its error output if it fails or `onOutput` throws. */
export async function runCommand(socket: Socket, { input, onOutput, signal }: Streams): Promise<void> {
  signal.throwIfAborted();
  const ended = Promise.withResolvers<void>();
  let errors = '';
  let failure: unknown;
  let outputs = Promise.resolve();
  let waiting = 0;
  const fail = (error: unknown): void => {
    failure ??= error;
    session.close();
    ended.resolve();
  };
  const decoder = new TextDecoder();
  const session = new ExecSession(socket, {
    onOpen: () => {
      if (input !== undefined) void send(input).catch(fail);
    },
    onOutput: (bytes, stream) => {
      if (stream === 'stderr') errors = (errors + decoder.decode(bytes, { stream: true })).slice(-MAX_ERROR_LENGTH);
      else if (failure === undefined) {
        waiting += bytes.length;
        if (waiting > MAX_WAITING) fail(new Error('the output arrives faster than it can be processed'));
        outputs = outputs
          .then(() => onOutput?.(bytes))
          .catch(fail)
          .finally(() => {
            waiting -= bytes.length;
          });
      }
    },
    onEnd: (message, exitCode) => {
      if (failure === undefined && exitCode !== 0)
        failure = new Error(sanitizeText(`${message}${errors === '' ? '' : `: ${errors.trim()}`}`));
      ended.resolve();
    },
  });
  const send = async (chunks: AsyncIterable<Uint8Array>): Promise<void> => {
    for await (const chunk of chunks) {
      while (socket.bufferedAmount > RESUME_BELOW && session.isOpen)
        await new Promise((resolve) => setTimeout(resolve, BUFFER_CHECK_MS));
      if (!session.writeBytes(chunk)) throw new Error('the connection was closed');
    }
    session.endInput();
  };
  const abort = (): void => fail(signal.reason);
  signal.addEventListener('abort', abort);
  try {
    await ended.promise;
    await outputs;
  } finally {
    signal.removeEventListener('abort', abort);
  }
  if (failure !== undefined) throw failure;
}

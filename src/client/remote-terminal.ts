import { Agent, WebSocket } from 'undici';
import { decodeJson, object, optional, text as string } from '../base/decode.ts';
import type { ClientCredentials } from './credentials.ts';

const STDIN = 0;
const STDOUT = 1;
const ERROR = 3;

export interface RemoteTerminalOptions {
  /** URL of the API server, such as `https://host:port`. */
  readonly server: string;
  /** Path and query of the subresource's URL. */
  readonly path: string;
  readonly credentials: ClientCredentials;
  readonly input: AsyncIterable<Uint8Array>;
  readonly output: (chunk: Uint8Array) => void;
  readonly signal?: AbortSignal;
}

/**
 * Connects input and output to a console over a WebSocket with the protocol `v4.channel.k8s.io`. Resolves at the end of
 * the session. Rejects with the server's error. Source: KEP-4006, k8s.io/apimachinery remotecommand.
 */
export async function openRemoteTerminal(options: RemoteTerminalOptions): Promise<void> {
  const { server, path, output, signal, input } = options;
  const { ca, cert, key, token } = options.credentials;
  const agent = new Agent({
    allowH2: false,
    connect: {
      minVersion: 'TLSv1.2',
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    },
  });
  const url = new URL(path, server);
  url.protocol = 'wss:';
  const socket = new WebSocket(url, {
    protocols: ['v4.channel.k8s.io'],
    dispatcher: agent,
    ...(token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }),
  });
  socket.binaryType = 'arraybuffer';
  const ended = Promise.withResolvers<void>();
  socket.addEventListener('open', () => void sendInput(socket, input).catch(ended.reject));
  socket.addEventListener('message', ({ data }: { readonly data: unknown }) => {
    const bytes = new Uint8Array(data as ArrayBuffer);
    const [channel] = bytes;
    if (channel === STDOUT && bytes.length > 1) output(bytes.subarray(1));
    if (channel === ERROR && bytes.length > 1) {
      const failure = failureOf(bytes.subarray(1));
      if (failure !== undefined) ended.reject(new Error(failure));
    }
  });
  socket.addEventListener('error', (event: unknown) => {
    const { message = '' } = event as { readonly message?: string };
    ended.reject(new Error(`console not opened: ${message === '' ? 'the server refused the connection' : message}`));
  });
  socket.addEventListener('close', () => ended.resolve());
  signal?.addEventListener('abort', () => socket.close(), { once: true });
  try {
    await ended.promise;
  } finally {
    socket.close();
    await agent.destroy();
  }
}

async function sendInput(socket: WebSocket, input: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const chunk of input) {
    if (socket.readyState !== WebSocket.OPEN) return;
    const frame = new Uint8Array(chunk.length + 1);
    frame[0] = STDIN;
    frame.set(chunk, 1);
    socket.send(frame);
  }
}

const STATUS = object({ status: optional(string), message: optional(string) });

/** Message of a Status with a failure; undefined for success. */
function failureOf(bytes: Uint8Array): string | undefined {
  const text = new TextDecoder().decode(bytes);
  try {
    const status = decodeJson(STATUS, text, 'status');
    return status.status === 'Success' ? undefined : (status.message ?? text);
  } catch {
    return text;
  }
}

/**
 * Client of `exec`, `attach`, consoles and port forwarding over WebSockets. One connection transports several channels
 * of bytes. Source: KEP-4006, k8s.io/apimachinery/pkg/util/remotecommand.
 */
import type { Agent, IncomingMessage } from 'node:http';
import { WebSocket } from 'ws';
import { ApiError, type Status } from '../api/meta/status.ts';
import { parseJson } from '../base/json/json.ts';
import type { ClientCredentials } from './credentials.ts';
import { ConnectionError } from './errors.ts';

/** Numbers of the channels. Port forwarding uses 0 for data and 1 for errors. */
export const REMOTE_CHANNEL = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4 } as const;
const CLOSE_CHANNEL = 255;
const MAX_MESSAGE_BYTES = 16 << 20;
/** Number of bytes that may be buffered in the socket. Above it, `send` waits. */
const HIGH_WATER_BYTES = 256 << 10;
const DRAIN_CHECK_MS = 5;
const MAX_ERROR_BYTES = 1 << 20;

export interface RemoteChannelsOptions {
  /** URL of the API server, such as `https://host:port`. */
  readonly server: string;
  /** Path and query of the subresource's URL. */
  readonly path: string;
  readonly credentials: ClientCredentials;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly insecureSkipTlsVerify?: boolean;
  readonly tlsServerName?: string;
  /** Agent that opens the connection, for example through a proxy. Its TLS options replace those above. */
  readonly agent?: Agent;
  /** Protocols in order of preference. Default: version 5, then 4, of the channel protocol. */
  readonly protocols?: readonly string[];
  /** Called with received bytes. The next message is handled after the result has resolved. */
  readonly onData: (channel: number, bytes: Uint8Array) => Promise<unknown> | undefined;
  readonly signal?: AbortSignal;
}

export interface RemoteChannels {
  /** Sends bytes. Resolves when more bytes may be sent. Does nothing after the end of the connection. */
  send(channel: number, bytes: Uint8Array): Promise<void>;
  /** Ends a channel from this side. Does nothing with version 4 of the protocol, which has no such message. */
  endChannel(channel: number): void;
  /** Resolves at the end of the connection. */
  readonly closed: Promise<void>;
  close(): void;
}

/** Opens a connection. Resolves when it is open. Rejects with the server's ApiError or a ConnectionError. */
export function openRemoteChannels(options: RemoteChannelsOptions): Promise<RemoteChannels> {
  const { server, credentials, onData, signal, protocols = ['v5.channel.k8s.io', 'v4.channel.k8s.io'] } = options;
  const { ca, cert, key, token } = credentials;
  const base = new URL(server);
  const url = `${base.protocol === 'http:' ? 'ws' : 'wss'}://${base.host}${base.pathname.replace(/\/+$/, '')}${options.path}`;
  const socket = new WebSocket(url, [...protocols], {
    minVersion: 'TLSv1.2',
    maxPayload: MAX_MESSAGE_BYTES,
    perMessageDeflate: false,
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(options.insecureSkipTlsVerify === true ? { rejectUnauthorized: false } : {}),
    ...(options.tlsServerName === undefined ? {} : { servername: options.tlsServerName }),
    ...(options.agent === undefined ? {} : { agent: options.agent }),
    headers: { ...options.headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
  });
  socket.binaryType = 'nodebuffer';
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
  });
  const onAbort = (): void => socket.terminate();
  signal?.addEventListener('abort', onAbort, { once: true });
  void closed.then(() => signal?.removeEventListener('abort', onAbort));
  return new Promise((resolve, reject) => {
    socket.once('unexpected-response', (_request, response) => {
      void responseError(response).then((error) => {
        reject(error);
        socket.terminate();
      });
    });
    // After the connection is open, an error has no effect here, because `close` follows.
    socket.on('error', (error) =>
      reject(signal?.aborted === true ? signal.reason : new ConnectionError(server, error)),
    );
    socket.on('message', (data: Buffer) => {
      const [channel] = data;
      if (channel === undefined || data.length <= 1) return;
      const pending = onData(channel, data.subarray(1));
      if (pending === undefined) return;
      socket.pause();
      const resume = (): void => socket.resume();
      pending.then(resume, resume);
    });
    socket.once('open', () =>
      resolve({
        send: (channel, bytes) => send(socket, channel, bytes),
        endChannel: (channel) => {
          if (socket.protocol.startsWith('v5.') && socket.readyState === WebSocket.OPEN)
            socket.send(Buffer.from([CLOSE_CHANNEL, channel]));
        },
        closed,
        close: () => socket.close(),
      }),
    );
  });
}

async function send(socket: WebSocket, channel: number, bytes: Uint8Array): Promise<void> {
  if (socket.readyState !== WebSocket.OPEN) return;
  const message = Buffer.allocUnsafe(bytes.length + 1);
  message[0] = channel;
  message.set(bytes, 1);
  socket.send(message);
  while (socket.bufferedAmount > HIGH_WATER_BYTES && socket.readyState === WebSocket.OPEN)
    await new Promise((resolve) => setTimeout(resolve, DRAIN_CHECK_MS));
}

async function responseError(response: IncomingMessage): Promise<ApiError> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_ERROR_BYTES) break;
    chunks.push(chunk);
  }
  const text = Buffer.concat(chunks).toString('utf8').trim();
  const code = response.statusCode ?? 500;
  return ApiError.fromStatus(statusIn(text) ?? { message: text || `HTTP ${code}` }, code);
}

function statusIn(text: string): Partial<Status> | undefined {
  try {
    const parsed = parseJson(text) as Partial<Status> | null;
    return parsed?.kind === 'Status' ? parsed : undefined;
  } catch {
    // If the body is not JSON, its text is the message.
    return undefined;
  }
}

/** Outcome of a remote command, from the Status on the error channel. Without a Status, the command has succeeded. */
export interface RemoteOutcome {
  readonly exitCode: number;
  /** Reason for a failure other than the command's exit code; undefined if the command has exited. */
  readonly failure: string | undefined;
}

export function outcomeOf(status: Uint8Array): RemoteOutcome {
  const text = Buffer.from(status).toString('utf8');
  if (text === '') return { exitCode: 0, failure: undefined };
  const parsed = statusIn(`${text}`) ?? looseStatus(text);
  if (parsed === undefined) return { exitCode: 1, failure: text };
  if (parsed.status === 'Success') return { exitCode: 0, failure: undefined };
  const code = parsed.details?.causes?.find(({ reason }) => reason === 'ExitCode')?.message;
  if ((parsed.reason as string) === 'NonZeroExitCode' && code !== undefined && /^\d+$/.test(code))
    return { exitCode: Number(code), failure: undefined };
  return { exitCode: 1, failure: parsed.message ?? text };
}

/** Parses a Status, even without its kind, because some servers omit it. */
function looseStatus(text: string): Partial<Status> | undefined {
  try {
    return parseJson(text) as Partial<Status>;
  } catch {
    return undefined;
  }
}

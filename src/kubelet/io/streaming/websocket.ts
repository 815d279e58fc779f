/** Exec, attach and port forwarding over WebSocket. */

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { createWebSocketStream, type WebSocket, WebSocketServer } from 'ws';
import { ignore } from '../../../base/errors.ts';
import type { Clock } from '../../../base/time/clock.ts';
import type { AttachOptions, ByteStream, ProcessStreams } from '../../../runtime/port.ts';
import { createWebSocketChannels } from '../../../wire/websocket/websocket-channels.ts';
import {
  channelVersion,
  refuseUpgrade,
  TUNNELLED_PORT_FORWARD,
  tokens,
  WEBSOCKET_REMOTE_COMMAND,
} from './negotiation.ts';
import { forwardConnection, parsePort } from './port-forward.ts';
import { serveRemoteCommand } from './remote-command.ts';
import { serveSpdyPortForward } from './spdy-port-forward.ts';

/** kubectl sends at most 32 KiB per message; tunnelled SPDY frames are of similar size. */
const MAX_MESSAGE_BYTES = 1024 * 1024;
const MAX_FORWARDED_PORTS = 64;

const Channels = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4 } as const;
const PORT_FORWARD_PROTOCOLS: readonly string[] = [
  TUNNELLED_PORT_FORWARD,
  'v4.channel.k8s.io',
  'v4.base64.channel.k8s.io',
];

interface Session {
  destroy(): void;
}

/**
 * Completes the handshake with the first of `protocols` that the client offers, or '' for a client without an offer.
 * Undefined if the handshake failed; the client has then received an error response.
 *
 * The protocol is chosen here because `ws` rejects names with a slash, such as the tunnel's. RFC 6455 requires tokens;
 * Kubernetes does not comply.
 */
async function accept(
  request: IncomingMessage,
  socket: Duplex,
  head: Uint8Array,
  protocols: readonly string[],
): Promise<{ readonly webSocket: WebSocket; readonly protocol: string } | undefined> {
  const offered = tokens(request.headers['sec-websocket-protocol']);
  const protocol = offered.length === 0 ? '' : protocols.find((candidate) => offered.includes(candidate));
  if (protocol === undefined) {
    await refuseUpgrade(socket, 400, 'unable to upgrade: no common websocket protocol');
    return undefined;
  }
  delete request.headers['sec-websocket-protocol'];
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MAX_MESSAGE_BYTES,
  });
  if (protocol !== '') server.on('headers', (headers) => headers.push(`Sec-WebSocket-Protocol: ${protocol}`));
  return new Promise((resolve) => {
    const refused = (): void => resolve(undefined);
    socket.once('close', refused);
    server.handleUpgrade(request, socket, Buffer.from(head), (webSocket) => {
      socket.off('close', refused);
      // A malformed frame may arrive with the handshake, or after the session has been rejected.
      webSocket.on('error', () => webSocket.terminate());
      resolve({ webSocket, protocol });
    });
  });
}

/** A request for an upgrade, with its socket and the first bytes after the request. */
export interface Upgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Uint8Array;
}

export async function serveWebSocketRemoteCommand(
  { request, socket, head }: Upgrade,
  wanted: AttachOptions,
  onSession: (session: Session) => void,
  open: (streams: AttachOptions) => Promise<ProcessStreams>,
): Promise<void> {
  const accepted = await accept(request, socket, head, WEBSOCKET_REMOTE_COMMAND);
  if (accepted === undefined) return;
  const { webSocket, protocol } = accepted;
  const version = channelVersion(protocol);
  const channels = createWebSocketChannels(webSocket, {
    base64: protocol.includes('base64.'),
    closeSignal: version >= 5,
    readableIds: [Channels.stdin, Channels.resize],
  });
  onSession(channels);
  const error = channels.channel(Channels.error);
  const stdout = channels.channel(Channels.stdout);
  const stderr = channels.channel(Channels.stderr);
  // An empty message on the first readable channel informs the client that the session is open.
  await (wanted.stdout ? stdout : wanted.stderr ? stderr : error)
    .write(new Uint8Array())
    .catch(ignore('the session notices a lost connection itself'));
  await serveRemoteCommand(
    {
      version,
      stdin: wanted.stdin ? channels.channel(Channels.stdin).readable : undefined,
      stdout: wanted.stdout ? stdout : undefined,
      stderr: wanted.stderr ? stderr : undefined,
      error,
      resize: wanted.tty ? channels.channel(Channels.resize).readable : undefined,
      gone: channels.closed,
    },
    wanted,
    open,
  );
  channels.close();
  await channels.closed;
}

export async function serveWebSocketPortForward(
  { request, socket, head }: Upgrade,
  clock: Clock,
  onSession: (session: Session) => void,
  connect: (port: number) => Promise<ByteStream>,
): Promise<void> {
  const accepted = await accept(request, socket, head, PORT_FORWARD_PROTOCOLS);
  if (accepted === undefined) return;
  const { webSocket, protocol } = accepted;
  if (protocol === TUNNELLED_PORT_FORWARD) {
    const tunnel = createWebSocketStream(webSocket);
    await serveSpdyPortForward(tunnel, new Uint8Array(), clock, onSession, connect);
    return;
  }
  const ports = requestedPorts(request.url ?? '');
  if (ports === undefined) {
    webSocket.close(1008, 'query parameter "ports" is missing or wrong');
    return;
  }
  const channels = createWebSocketChannels(webSocket, {
    base64: protocol.includes('base64.'),
    closeSignal: false,
    readableIds: ports.map((_, index) => index * 2),
  });
  onSession(channels);
  await Promise.all(
    ports.map(async (port, index) => {
      const data = channels.channel(index * 2);
      const error = channels.channel(index * 2 + 1);
      // Both channels start with the port number (little endian), so that clients can identify them.
      const preamble = Buffer.alloc(2);
      preamble.writeUInt16LE(port);
      await data.write(preamble).catch(ignore('the forwarding notices a lost connection itself'));
      await error.write(preamble).catch(ignore('the forwarding notices a lost connection itself'));
      await forwardConnection(port, data, error, connect);
    }),
  );
  channels.close();
  await channels.closed;
}

/** Ports in `ports=` (API server) or `port=` (kubelet), repeated or comma-separated. */
function requestedPorts(url: string): readonly number[] | undefined {
  const query = new URLSearchParams(url.split('?', 2)[1] ?? '');
  const texts = [...query.getAll('ports'), ...query.getAll('port')].flatMap((text) => text.split(','));
  if (texts.length === 0 || texts.length > MAX_FORWARDED_PORTS) return undefined;
  const ports: number[] = [];
  for (const text of texts) {
    const port = parsePort(text);
    if (port === undefined) return undefined;
    ports.push(port);
  }
  return ports;
}

/**
 * Determines kind and version of upgrade requests, and sends plain HTTP responses to requests that cannot be served.
 */

import type { IncomingMessage } from 'node:http';
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { AttachOptions } from '../../../runtime/port.ts';
import { endSocket } from '../../../wire/connections/end-socket.ts';

const SPDY_REMOTE_COMMAND = ['v4.channel.k8s.io', 'v3.channel.k8s.io', 'v2.channel.k8s.io', 'channel.k8s.io'] as const;
export const SPDY_PORT_FORWARD = 'portforward.k8s.io';
export const TUNNELLED_PORT_FORWARD = 'SPDY/3.1+portforward.k8s.io';

/** Versions of the WebSocket channel protocol, in order of the server's preference. Base64 variants use text frames. */
export const WEBSOCKET_REMOTE_COMMAND: readonly string[] = [
  'v5.channel.k8s.io',
  'v4.channel.k8s.io',
  'v4.base64.channel.k8s.io',
  'channel.k8s.io',
  'base64.channel.k8s.io',
];

export type UpgradeKind = 'spdy' | 'websocket';

/** The requested upgrade; undefined if it is not supported. */
export function upgradeKind(request: IncomingMessage): UpgradeKind | undefined {
  const connection = tokens(request.headers.connection);
  if (!connection.some((token) => token.toLowerCase() === 'upgrade')) return undefined;
  const upgrade = request.headers.upgrade?.toLowerCase();
  return upgrade === 'spdy/3.1' ? 'spdy' : upgrade === 'websocket' ? 'websocket' : undefined;
}

/**
 * SPDY remote-command version to use. A client without the version header gets version 1. Undefined if no version in
 * the header is supported.
 */
export function negotiateSpdyRemoteCommand(
  request: IncomingMessage,
): { readonly name: string; readonly version: number } | undefined {
  const offered = offeredStreamProtocols(request);
  if (offered.length === 0) return { name: '', version: 1 };
  const name = SPDY_REMOTE_COMMAND.find((candidate) => offered.includes(candidate));
  return name === undefined ? undefined : { name, version: channelVersion(name) };
}

export function negotiateSpdyPortForward(request: IncomingMessage): string | undefined {
  const offered = offeredStreamProtocols(request);
  if (offered.length === 0) return '';
  return offered.includes(SPDY_PORT_FORWARD) ? SPDY_PORT_FORWARD : undefined;
}

/** Version in a protocol name: `v4.base64.channel.k8s.io` → 4. A name without a version means 1. */
export function channelVersion(name: string): number {
  const match = /^v([2-5])\./.exec(name);
  return match?.[1] === undefined ? 1 : Number(match[1]);
}

export const acceptedStreamProtocols = (kind: 'remotecommand' | 'portforward'): string =>
  kind === 'portforward' ? SPDY_PORT_FORWARD : SPDY_REMOTE_COMMAND.join(', ');

/** Streams to open: a terminal has no separate stderr. Undefined if no stream is requested. */
export function requestedStreams(requested: AttachOptions): AttachOptions | undefined {
  const { stdin, stdout, tty } = requested;
  const stderr = requested.stderr && !tty;
  return stdin || stdout || stderr ? { stdin, stdout, stderr, tty } : undefined;
}

export function writeSwitchingProtocols(socket: Duplex, streamProtocol: string): void {
  const version = streamProtocol === '' ? '' : `X-Stream-Protocol-Version: ${streamProtocol}\r\n`;
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n${version}\r\n`);
}

/** Sends a plain HTTP response and closes the connection, so that no data can follow a failed upgrade. */
export function refuseUpgrade(
  socket: Duplex,
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  const body = `${message}\n`;
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n`;
  for (const [name, value] of Object.entries(headers)) head += `${name}: ${value}\r\n`;
  socket.on('error', () => {});
  return new Promise((resolve) => {
    socket.once('close', resolve);
    endSocket(socket, `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  });
}

function offeredStreamProtocols(request: IncomingMessage): readonly string[] {
  return tokens(request.headers['x-stream-protocol-version']);
}

/** Elements of a comma-separated header. */
export function tokens(header: string | string[] | undefined): readonly string[] {
  const joined = Array.isArray(header) ? header.join(',') : (header ?? '');
  return joined
    .split(',')
    .map((token) => token.trim())
    .filter((token) => token !== '');
}

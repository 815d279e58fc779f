/** Joins two TCP streams, for passthrough routes and upgraded connections. */
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Backend, Balancing, Choice } from '../core/port.ts';
import { hasServers, type IdleBackends } from './idle.ts';
import type { RouteMetrics } from './metrics.ts';

const ATTEMPTS = 3;
/** Number of checks of a tunnel within its idle time. */
const CHECKS = 4;

export interface SpliceParts {
  readonly backend: Backend;
  readonly source: string;
  readonly balancing: Balancing;
  readonly metrics: RouteMetrics;
  readonly idle: IdleBackends;
  /** Port of this router for TLS. */
  readonly ownPort: number;
  /** The route's current row; undefined if the server name no longer belongs to a passthrough route. */
  current(): Backend | undefined;
}

/** Connects `client`, whose first bytes are `head`, to a server of the route; closes it if there is no server. */
export function passThrough(client: Socket, head: Buffer, parts: SpliceParts): void {
  const tried = new Set<string>();
  client.on('error', () => client.destroy());
  connectNext(client, head, parts, tried);
}

function connectNext(client: Socket, head: Buffer, parts: SpliceParts, tried: Set<string>): void {
  const { backend, source, balancing, metrics } = parts;
  const choice =
    tried.size >= ATTEMPTS || client.destroyed
      ? undefined
      : balancing.pick(backend, { address: source, cookie: undefined }, tried);
  if (choice === undefined) {
    if (tried.size === 0 && !client.destroyed && holdIdle(client, head, parts)) return;
    if (tried.size > 0) metrics.of(backend).connectErrors++;
    client.destroy();
    return;
  }
  tried.add(choice.key);
  const { address: host, port } = choice.endpoint;
  const server = connect({ host, port, allowHalfOpen: true });
  const giveUp = (): void => {
    server.destroy();
  };
  const timer = setTimeout(giveUp, backend.options.connectTimeoutMs);
  const onGone = (): void => void server.destroy();
  client.once('close', onGone);
  server.on('error', () => server.destroy());
  const onFailed = (): void => {
    clearTimeout(timer);
    client.off('close', onGone);
    connectNext(client, head, parts, tried);
  };
  server.once('close', onFailed);
  server.once('connect', () => {
    clearTimeout(timer);
    server.off('close', onFailed);
    // A connection to an address of this host has this address on both ends. The router would forward the connection to
    // itself until the limits of the host are reached.
    if (choice.endpoint.port === parts.ownPort && server.localAddress === server.remoteAddress) {
      metrics.of(backend).connectErrors++;
      client.destroy();
      return;
    }
    join(client, server, head, parts, choice);
  });
}

/** Waits for servers if the service is idled. Returns true in this case. */
function holdIdle(client: Socket, head: Buffer, parts: SpliceParts): boolean {
  const cancel = parts.idle.hold(parts.backend, {
    isReady: () => {
      const backend = parts.current();
      return backend === undefined || hasServers(backend);
    },
    settled: (ready) => {
      const backend = ready ? parts.current() : undefined;
      if (backend === undefined) client.destroy();
      else connectNext(client, head, { ...parts, backend }, new Set());
    },
  });
  if (cancel === undefined) return false;
  client.once('close', cancel);
  return true;
}

function join(client: Socket, server: Socket, head: Buffer, parts: SpliceParts, choice: Choice): void {
  const { backend, balancing, metrics } = parts;
  const counters = metrics.of(backend);
  counters.sessions++;
  balancing.opened(choice);
  server.once('close', () => {
    balancing.closed(choice);
    counters.bytesIn += server.bytesWritten;
    counters.bytesOut += server.bytesRead;
  });
  if (head.length > 0) server.write(head);
  splice(client, server, backend.options.tunnelTimeoutMs);
}

/**
 * Copies data in both directions. The end of one stream is passed to the other stream. Both streams are closed when
 * either one closes, or at most 1.25 × `idleMs` after the last byte.
 */
export function splice(a: Duplex, b: Socket, idleMs: number): void {
  const close = (): void => {
    a.destroy();
    b.destroy();
  };
  // The socket's own byte counters are compared, because a listener per chunk would cost throughput. Traffic in only
  // one direction also keeps both streams open.
  let seen = -1;
  let quiet = 0;
  const timer = setInterval(() => {
    const bytes = b.bytesRead + b.bytesWritten;
    quiet = bytes === seen ? quiet + 1 : 0;
    seen = bytes;
    if (quiet >= CHECKS) close();
  }, idleMs / CHECKS).unref();
  for (const side of [a, b]) {
    side.on('error', close);
    side.once('close', () => {
      clearInterval(timer);
      close();
    });
  }
  a.pipe(b);
  b.pipe(a);
}

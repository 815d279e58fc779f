/** HTTPS listener of the machine config server. */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { ConnectionGate, type GatedConnection, type GateLimits } from '../../../../wire/connections/gate.ts';
import { GatedServer } from '../../../../wire/connections/gated-server.ts';
import { HttpConnection } from '../../../../wire/connections/http-connection.ts';
import type { ConfigListener, ListenOptions } from '../../server/port.ts';

/** Connection limits. They can be low, because there are few hosts and each sends one request. */
const LIMITS: GateLimits = {
  authenticated: 0,
  unauthenticated: 64,
  idleMs: 0,
  unauthenticatedIdleMs: 15_000,
  handshakeMs: 32_000,
};
const HEADERS_MS = 15_000;
/** Maximum size of a request body. Requests have none. */
const MAX_BODY = 0;

/** Starts the listener. Rejects if the port is in use. */
export async function listenForConfigs(options: ListenOptions): Promise<ConfigListener> {
  const server = createServer({ ...options.tls, minVersion: 'TLSv1.2', ALPNProtocols: ['http/1.1'] });
  server.headersTimeout = HEADERS_MS;
  server.requestTimeout = HEADERS_MS;
  server.maxRequestsPerSocket = 16;
  const gate = new ConnectionGate(LIMITS);
  const gated = new GatedServer(
    server,
    gate,
    (socket: TLSSocket, admitted: GatedConnection) => new HttpConnection(socket, admitted),
  );
  server.prependListener('connection', (socket: Socket) => {
    if (!options.admits(socket.remoteAddress ?? '')) socket.destroy();
  });
  server.prependListener('secureConnection', (socket) => {
    if (gated.secured(socket) === undefined) socket.destroy();
  });
  server.on('request', (request, response) => {
    const connection = gated.of(request.socket);
    if (connection === undefined || !connection.admits()) {
      request.destroy();
      return;
    }
    connection.response = response;
    connection.identified('anonymous');
    void serve(options, request, response);
  });
  server.listen({ host: options.address, port: options.port });
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    updateTls: (tls) => server.setSecureContext({ ...tls }),
    async close() {
      gate.stop();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

async function serve({ handle }: ListenOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = 'GET', url = '/', headers, socket } = request;
  if (Number(headers['content-length'] ?? 0) > MAX_BODY || headers['transfer-encoding'] !== undefined) {
    response.writeHead(413, { 'content-length': 0, connection: 'close' }).end();
    return;
  }
  const answer = await handle({
    method,
    path: url.split('?')[0] ?? '',
    accept: headers.accept ?? '',
    authorization: headers.authorization ?? '',
    remoteAddress: socket.remoteAddress ?? '',
  });
  const body = Buffer.from(answer.body ?? '', 'utf8');
  response.writeHead(answer.status, { ...answer.headers, 'content-length': body.length });
  response.end(method === 'HEAD' ? undefined : body);
}

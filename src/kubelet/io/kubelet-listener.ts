import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { ConnectionGate, type GatedConnection } from '../../wire/connections/gate.ts';
import { GatedServer } from '../../wire/connections/gated-server.ts';
import { HttpConnection } from '../../wire/connections/http-connection.ts';
import type { KubeletConnection, KubeletListener, KubeletListenOptions, PeerSubject } from '../server/port.ts';

/** Listens on the kubelet's port (`KubeletListen` in kubelet/server/port.ts). */
export async function listenKubelet(options: KubeletListenOptions): Promise<KubeletListener> {
  const server = createServer({
    ...options.tls,
    requestCert: true,
    rejectUnauthorized: false,
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['http/1.1'],
  });
  server.headersTimeout = options.headersTimeoutMs;
  server.requestTimeout = 0;
  const gate = new ConnectionGate(options.limits);
  const gated = new GatedServer(
    server,
    gate,
    (socket: TLSSocket, admitted: GatedConnection) => new PeerConnection(socket, admitted),
  );
  const sockets = new Set<TLSSocket>();
  // Must run before Node's own listener, which starts to read requests.
  server.prependListener('secureConnection', (socket) => {
    if (gated.secured(socket) === undefined) {
      socket.destroy();
      return;
    }
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('request', (request, response) => {
    const connection = gated.of(request.socket);
    if (connection === undefined || !connection.admits()) {
      request.destroy();
      return;
    }
    connection.inFlight += 1;
    connection.response = response;
    response.once('close', () => {
      connection.inFlight -= 1;
    });
    options.request(request, response, connection);
  });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const connection = gated.of(socket);
    if (connection === undefined || !connection.admits()) {
      socket.destroy();
      return;
    }
    connection.inFlight += 1;
    options.upgrade(request, socket, head, connection);
  });
  server.listen({ host: options.address, port: options.port });
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    updateTls: (tls) => server.setSecureContext({ ...tls }),
    async close() {
      gate.stop();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

class PeerConnection extends HttpConnection implements KubeletConnection {
  readonly #tls: TLSSocket;

  constructor(socket: TLSSocket, gated: GatedConnection) {
    super(socket, gated);
    this.#tls = socket;
  }

  peer(): PeerSubject | undefined {
    if (!this.#tls.authorized) return undefined;
    // Node's types declare single values, but a subject may repeat an attribute.
    const subject = this.#tls.getPeerCertificate().subject as
      | { readonly CN?: string | string[]; readonly O?: string | string[] }
      | undefined;
    if (typeof subject?.CN !== 'string' || subject.CN === '') return undefined;
    const { CN: commonName, O: organizations = [] } = subject;
    return { commonName, organizations: typeof organizations === 'string' ? [organizations] : organizations };
  }
}

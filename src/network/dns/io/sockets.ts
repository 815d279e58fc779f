/** UDP and TCP sockets of a name server. Source: RFC 1035 §4.2, RFC 7766. */
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { createServer, isIPv6, type Server, type Socket } from 'node:net';
import type { DnsHandler, DnsListener, DnsSockets } from '../port.ts';

const MAX_CONNECTIONS = 256;
const MAX_CONNECTIONS_PER_SOURCE = 32;
/** Maximum number of outstanding responses on one connection. */
const MAX_PIPELINED = 32;
/** Maximum time without a complete message or a response. */
const IDLE_MS = 10_000;
const LENGTH_BYTES = 2;
/** Size of the kernel's receive buffer, for bursts of many pods. */
const RECEIVE_BYTES = 1024 * 1024;

export function createDnsSockets({ idleMs = IDLE_MS } = {}): DnsSockets {
  return {
    async listen(address, port, handler) {
      const udp = await listenUdp(address, port, handler);
      try {
        const tcp = await listenTcp(address, udp.port, handler, idleMs);
        return { port: udp.port, close: () => Promise.all([udp.close(), tcp.close()]).then(() => {}) };
      } catch (error) {
        await udp.close();
        throw error;
      }
    },
  };
}

function listenUdp(address: string, port: number, handler: DnsHandler): Promise<DnsListener> {
  const socket: UdpSocket = createSocket({
    type: isIPv6(address) ? 'udp6' : 'udp4',
    // Client addresses are numeric. This function replaces Node's look-up, which would cost a turn of the event loop.
    lookup: (host, _options, done) => done(null, host, isIPv6(host) ? 6 : 4),
  });
  const send = (response: Uint8Array | undefined, clientPort: number, client: string): void => {
    // Send errors are ignored, because the client may have exited.
    if (response !== undefined) socket.send(response, clientPort, client, () => {});
  };
  socket.on('message', (message, client) => {
    // A response cannot be sent to port 0 (Node throws); only forged packets have it as source.
    if (client.port === 0) return;
    const response = handler(message, client.address, 'udp');
    if (response instanceof Promise) {
      void response.then(
        (late) => {
          if (!closed) send(late, client.port, client.address);
        },
        () => {},
      );
    } else send(response, client.port, client.address);
  });
  let closed = false;
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.bind({ port, address, exclusive: true }, () => {
      socket.off('error', reject);
      socket.on('error', () => {});
      try {
        socket.setRecvBufferSize(RECEIVE_BYTES);
      } catch {
        // A smaller buffer loses more queries of a burst, but works.
      }
      resolve({
        port: socket.address().port,
        close: () =>
          new Promise((done) => {
            closed = true;
            socket.close(() => done());
          }),
      });
    });
  });
}

function listenTcp(address: string, port: number, handler: DnsHandler, idleMs: number): Promise<DnsListener> {
  const open = new Set<Socket>();
  const perSource = new Map<string, number>();
  const server: Server = createServer({ noDelay: true }, (socket) => {
    const source = socket.remoteAddress ?? '';
    const count = (perSource.get(source) ?? 0) + 1;
    if (open.size >= MAX_CONNECTIONS || count > MAX_CONNECTIONS_PER_SOURCE) {
      socket.destroy();
      return;
    }
    open.add(socket);
    perSource.set(source, count);
    socket.on('close', () => {
      open.delete(socket);
      const left = (perSource.get(source) ?? 1) - 1;
      if (left > 0) perSource.set(source, left);
      else perSource.delete(source);
    });
    serveStream(socket, source, handler, idleMs);
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host: address }, () => {
      server.off('error', reject);
      server.on('error', () => {});
      resolve({
        port,
        close: () =>
          new Promise((done) => {
            for (const socket of open) socket.destroy();
            server.close(() => done());
          }),
      });
    });
  });
}

/** Serves length-prefixed messages. The client may send requests before it has received earlier responses. */
function serveStream(socket: Socket, source: string, handler: DnsHandler, idleMs: number): void {
  let pending: Buffer = Buffer.alloc(0);
  let underWay = 0;
  // The timer is not restarted when only a part of a message arrives, so that a slow client cannot keep a connection.
  const idle = setTimeout(() => socket.destroy(), idleMs);
  socket.once('close', () => clearTimeout(idle));
  const send = (response: Uint8Array | undefined): void => {
    if (response === undefined || socket.destroyed) return;
    idle.refresh();
    const length = Buffer.allocUnsafe(LENGTH_BYTES);
    length.writeUInt16BE(response.length);
    // A client that does not read its responses is not served any further.
    if (!socket.write(Buffer.concat([length, response]))) socket.pause();
  };
  const take = (): void => {
    while (underWay < MAX_PIPELINED && !socket.isPaused() && pending.length >= LENGTH_BYTES) {
      const length = pending.readUInt16BE(0);
      if (pending.length < LENGTH_BYTES + length) return;
      const message = pending.subarray(LENGTH_BYTES, LENGTH_BYTES + length);
      pending = pending.subarray(LENGTH_BYTES + length);
      idle.refresh();
      const response = handler(message, source, 'tcp');
      if (!(response instanceof Promise)) {
        send(response);
        continue;
      }
      underWay++;
      void response
        .then(send, () => socket.destroy())
        .finally(() => {
          underWay--;
          if (underWay === MAX_PIPELINED - 1) socket.resume();
          take();
        });
    }
    if (underWay >= MAX_PIPELINED) socket.pause();
  };
  socket.on('error', () => socket.destroy());
  socket.on('drain', () => {
    socket.resume();
    take();
  });
  socket.on('data', (chunk: Buffer) => {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    take();
  });
}

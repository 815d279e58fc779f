/**
 * Discovers the MTU of a path: the kernel sets "don't fragment" on a datagram that fits its known MTU. A router with a
 * smaller MTU reports it, and the kernel keeps it with the route for ten minutes. Sources: RFC 1191, RFC 8201, ip(7)
 * IP_MTU_DISCOVER.
 */
import { createSocket, type Socket } from 'node:dgram';

/** Time to wait for the report of a router on the path. */
const ANSWER_MS = 400;
const HEADERS: Readonly<Record<4 | 6, number>> = { 4: 28, 6: 48 };
const MAX_DATAGRAM = 65_507;

export interface ProbedPath {
  readonly address: string;
  /** Currently known MTU of the path. */
  readonly mtu: number;
}

/**
 * Sends one datagram of zeros per path to `port`. A VXLAN device there drops it, because the flag of a valid identifier
 * is not set. Resolves when responses should have arrived; never rejects.
 */
export function createPathProbe(port: number): (paths: readonly ProbedPath[]) => Promise<void> {
  return async (paths) => {
    const sockets = new Map<4 | 6, Socket>();
    try {
      for (const { address, mtu } of paths) {
        const family = address.includes(':') ? 6 : 4;
        const socket = sockets.get(family) ?? open(family);
        sockets.set(family, socket);
        const size = Math.min(MAX_DATAGRAM, mtu - HEADERS[family]);
        // Errors are ignored, because an unreachable host is detected by its missing route.
        if (size > 0) socket.send(Buffer.alloc(size), port, address, () => {});
      }
      await new Promise((resolve) => setTimeout(resolve, ANSWER_MS));
    } finally {
      for (const socket of sockets.values()) socket.close();
    }
  };
}

function open(family: 4 | 6): Socket {
  const socket = createSocket(family === 4 ? 'udp4' : 'udp6');
  socket.on('error', () => {});
  return socket;
}

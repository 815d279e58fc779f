/**
 * Ports for servers that tests start as processes of their own and that cannot listen on port 0.
 *
 * A port that was bound with 0 and closed may be assigned again, by the kernel to a connection or to another test,
 * before its user listens on it. So these ports are below the kernel's ephemeral range (`net.ipv4.ip_local_port_range`,
 * 32768 and up) and below the node ports. Each is reserved for the lifetime of the test's process by an abstract socket
 * of that name, which ends with the process and belongs to the network namespace, like the port.
 */
import { createSocket } from 'node:dgram';
import { createServer, type ListenOptions } from 'node:net';

const FIRST = 12_000;
const COUNT = 17_000;

function listens(options: ListenOptions, keep: boolean): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer().unref();
    server.once('error', () => resolve(false));
    server.listen(options, () => {
      if (keep) resolve(true);
      else server.close(() => resolve(true));
    });
  });
}

function datagrams(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket('udp4');
    socket.once('error', () => resolve(false));
    socket.bind(port, '0.0.0.0', () => {
      socket.close(() => resolve(true));
    });
  });
}

/** A TCP and UDP port that is unused and is not assigned to another test while this process lives. */
export async function freePort(): Promise<number> {
  let port = FIRST + Math.floor(Math.random() * COUNT);
  for (let tried = 0; tried < COUNT; tried++) {
    if (
      (await listens({ path: `\0hyperedge-test-port-${port}` }, true)) &&
      (await listens({ port, host: '0.0.0.0' }, false)) &&
      (await datagrams(port))
    )
      return port;
    port = FIRST + ((port - FIRST + 1) % COUNT);
  }
  throw new Error(`no port from ${FIRST} to ${FIRST + COUNT - 1} is free`);
}

export function freePorts(count: number): Promise<number[]> {
  return Promise.all(Array.from({ length: count }, freePort));
}

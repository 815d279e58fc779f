/**
 * Ports for servers that tests start as separate processes and that cannot listen on port 0.
 *
 * A test cannot bind port 0, close the port and pass its number to the server: in the meantime, the kernel may assign
 * the port to a connection or to another test. Therefore these ports are below the kernel's ephemeral range
 * (`net.ipv4.ip_local_port_range`, 32768 and up) and below the node ports. An abstract socket whose name contains the
 * port reserves it for the lifetime of the test's process. Like the port, the socket belongs to the network namespace.
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

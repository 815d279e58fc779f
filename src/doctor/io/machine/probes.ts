/** Probes of a DNS server and of a TCP address. They run in the network namespace of the process. */
import { Resolver } from 'node:dns/promises';
import { connect } from 'node:net';
import { messageOf } from '../../../base/errors.ts';

const LIMIT_MS = 3000;

/** Queries the server. Returns the problem, or undefined if the server resolves the name. */
export async function probeQuery(server: string, name: string): Promise<string | undefined> {
  const resolver = new Resolver({ timeout: LIMIT_MS / 2, tries: 2 });
  try {
    resolver.setServers([server.includes(':') ? `[${server}]` : server]);
    await resolver.resolve4(name);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

/**
 * Tries to connect. Returns the problem, or undefined if the address accepts or refuses the connection. Both responses
 * show that packets arrive.
 */
export function probeConnection(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: LIMIT_MS });
    const end = (problem: string | undefined): void => {
      socket.destroy();
      resolve(problem);
    };
    socket.on('connect', () => end(undefined));
    socket.on('timeout', () => end(`no answer within ${LIMIT_MS / 1000} s`));
    socket.on('error', (error: NodeJS.ErrnoException) =>
      end(error.code === 'ECONNREFUSED' ? undefined : messageOf(error)),
    );
  });
}

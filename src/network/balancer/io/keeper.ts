/**
 * The keeper is a process that keeps the balancer's port open while the host process restarts. It receives the
 * listening socket and the connections, serves old and new connections, and ends some time after the next host process
 * listens.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { resetSocket } from '../../../wire/connections/reset.ts';
import type { Routing } from '../port.ts';
import { BalancerServer } from './balancer.ts';

export interface ForwardedConnection {
  readonly target: string;
  readonly client: Socket;
  readonly backend: Socket;
}

export interface Keeping {
  /** Transfers the sockets of a connection to the keeper. */
  carry(connection: ForwardedConnection): Promise<void>;
  /** Reports that no further connections follow. */
  end(): void;
}

export interface ListenerKeeper {
  /**
   * Starts a keeper with the listening socket. Resolves with undefined if no process could be started; the caller then
   * still owns the socket.
   */
  keep(server: Server, targets: readonly string[]): Promise<Keeping | undefined>;
}

type Message =
  | { readonly kind: 'listen'; readonly targets: readonly string[] }
  | { readonly kind: 'client' | 'backend'; readonly target: string };

const KEEPER_NAME = 'hyperedge-keep';
const START_MS = 3_000;
/** The keeper ends after this time if the host process is not started again. */
const ABANDONED_MS = 60_000;
/**
 * Silence after which the keeper closes a connection. A shorter time would lose a request that the client sends while
 * its connection is being closed, so a connection in use stays until the client or the server ends it.
 */
const QUIET_MS = 2_000;
const LONGEST_MS = 10 * 60_000;
const ANSWER_MS = 1_000;

/** Creates a port that starts keepers. `command` is a program that calls `runKeeper`. */
export function createKeeper(command: readonly string[]): ListenerKeeper {
  const [file = '', ...args] = command;
  return {
    keep: (server, targets) =>
      new Promise((resolve) => {
        // The keeper gets its own process group, because an interrupt from the terminal must end only the host process.
        const child = spawn(file, args, { detached: true, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
        const timer = setTimeout(() => settle(false), START_MS);
        const settle = (kept: boolean): void => {
          clearTimeout(timer);
          child.removeAllListeners('exit').removeAllListeners('message').removeAllListeners('error');
          child.on('error', () => {});
          child.unref();
          if (!kept) child.kill('SIGKILL');
          resolve(kept ? keepingOf(child) : undefined);
        };
        child.once('error', () => settle(false));
        child.once('exit', () => settle(false));
        child.once('message', () => settle(true));
        void send(child, { kind: 'listen', targets }, server).catch(() => settle(false));
      }),
  };
}

function send(child: ChildProcess, message: Message, handle: Server | Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    child.send(message, handle, (error) => (error === null ? resolve() : reject(error)));
  });
}

function keepingOf(child: ChildProcess): Keeping {
  return {
    carry: async ({ target, client, backend }) => {
      try {
        await send(child, { kind: 'client', target }, client);
        await send(child, { kind: 'backend', target }, backend);
      } catch {
        // The keeper has exited, so the connections that it had received are lost.
        resetSocket(client);
        resetSocket(backend);
      }
    },
    end: () => {
      if (child.connected) child.disconnect();
    },
  };
}

/**
 * Runs the keeper's process. `socket`: path of the Unix socket on which the next host process reports that it listens.
 * `learn`: called once with the servers that `routing` may choose from. Resolves when all connections have ended.
 */
export async function runKeeper(
  socket: string,
  { routing, learn }: { readonly routing: Routing; readonly learn: (targets: readonly string[]) => void },
): Promise<void> {
  // systemd shows this name when it reports a remaining process of the unit.
  process.title = KEEPER_NAME;
  const balancer = new BalancerServer(routing, {});
  const relieved = Promise.withResolvers<void>();
  let client: Socket | undefined;
  process.on('message', (message: Message, handle) => {
    if (message.kind === 'listen') {
      learn(message.targets);
      void balancer.adopt(handle as Server).then(() => process.send?.('listening'));
    } else if (message.kind === 'client') client = handle as Socket | undefined;
    else {
      const backend = handle as Socket | undefined;
      // A handle is undefined if its socket was closed during the transfer.
      if (client !== undefined && backend !== undefined) balancer.carry({ target: message.target, client, backend });
      else for (const each of [client, backend]) if (each !== undefined) resetSocket(each);
      client = undefined;
    }
  });
  await rm(socket, { force: true });
  const control = createServer((connection) => {
    connection.on('error', () => {});
    connection.once('data', () => {
      relieved.resolve();
      connection.end();
    });
  });
  await new Promise<void>((resolve) => control.listen(socket, () => resolve()));
  const abandoned = setTimeout(() => relieved.resolve(), ABANDONED_MS);
  await relieved.promise;
  clearTimeout(abandoned);
  control.close();
  await balancer.drain(LONGEST_MS, QUIET_MS);
  await balancer.close();
}

/**
 * Reports whether a keeper runs. With `relieve`, also reports that this process listens again, so that the keeper ends.
 */
export function requestKeeper(socket: string, { relieve }: { readonly relieve: boolean }): Promise<boolean> {
  return new Promise((resolve) => {
    const client = connect(socket);
    const settle = (runs: boolean): void => {
      client.destroy();
      resolve(runs);
    };
    client.setTimeout(ANSWER_MS, () => settle(false));
    client.on('error', () => settle(false));
    client.once('connect', () => {
      if (!relieve) settle(true);
      else client.write('listening');
    });
    client.once('end', () => settle(true));
  });
}

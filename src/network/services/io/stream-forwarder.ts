import { execFile } from 'node:child_process';
import { createSocket, type RemoteInfo, type Socket as UdpSocket } from 'node:dgram';
import { createServer, type Socket, connect as tcpConnect } from 'node:net';
import { promisify } from 'node:util';
import { ignore, messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import { resetSocket } from '../../../wire/connections/reset.ts';
import type { Listener, PickTarget, StreamForwarder } from '../core/port.ts';

const execute = promisify(execFile);

export interface ForwarderOptions {
  /** Name of the dummy link that carries the service addresses, if the kernel supports dummy links. */
  readonly dummyLink: string;
  /** Link for the service addresses if the kernel has no dummy links: the pod bridge. */
  readonly fallbackLink: string;
  readonly ipPath?: string;
  readonly log: Log;
  /** Limits of one listener. */
  readonly limits?: ForwarderLimits;
}

interface ForwarderLimits {
  readonly tcp: number;
  readonly udp: number;
  /** Limit per client, for each protocol. */
  readonly perClient: number;
}

const CONNECT_TIMEOUT_MS = 5_000;
/** Idle time of UDP flows: conntrack's default, which applications expect. kube-proxy's userspace default is 250 ms. */
const UDP_IDLE_MS = 30_000;
/** Default limits. Each connection or flow needs one or two file descriptors of this process. */
const LIMITS: ForwarderLimits = { tcp: 8_192, udp: 4_096, perClient: 2_048 };

export function createStreamForwarder(options: ForwarderOptions): StreamForwarder {
  const ip = options.ipPath ?? 'ip';
  let link: Promise<string> | undefined;
  const linkName = (): Promise<string> => {
    link ??= execute(ip, ['link', 'add', options.dummyLink, 'type', 'dummy'])
      .then(() => execute(ip, ['link', 'set', options.dummyLink, 'up']))
      .then(
        () => options.dummyLink,
        (error: unknown) => {
          if (messageOf(error).includes('File exists')) return options.dummyLink;
          options.log.info('kernel has no dummy links; service addresses are on the bridge', {
            link: options.fallbackLink,
          });
          return options.fallbackLink;
        },
      );
    return link;
  };
  return {
    async bindAddress(address) {
      await execute(ip, ['addr', 'replace', `${address}/32`, 'dev', await linkName()]);
    },
    async unbindAddress(address) {
      await execute(ip, ['addr', 'del', `${address}/32`, 'dev', await linkName()]).catch(
        ignore('the address may have been removed'),
      );
    },
    listen: (protocol, address, port, pick) => {
      const { log, limits = LIMITS } = options;
      return protocol === 'TCP'
        ? listenTcp(address, port, pick, { log, limits })
        : listenUdp(address, port, pick, { log, limits });
    },
  };
}

interface Bounds {
  readonly log: Log;
  readonly limits: ForwarderLimits;
}

/** Numbers of open connections and flows by client address. */
class Clients {
  readonly #counts = new Map<string, number>();

  has(address: string): number {
    return this.#counts.get(address) ?? 0;
  }

  add(address: string): void {
    this.#counts.set(address, this.has(address) + 1);
  }

  remove(address: string): void {
    const left = this.has(address) - 1;
    if (left > 0) this.#counts.set(address, left);
    else this.#counts.delete(address);
  }
}

function listenTcp(
  address: string | undefined,
  port: number,
  pick: PickTarget,
  { log, limits }: Bounds,
): Promise<Listener> {
  const open = new Set<Socket>();
  const clients = new Clients();
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const source = plainAddress(client.remoteAddress);
    const isFull = open.size >= 2 * limits.tcp || clients.has(source) >= limits.perClient;
    const target = isFull ? undefined : pick(source);
    if (target === undefined) {
      resetSocket(client);
      return;
    }
    clients.add(source);
    client.once('close', () => clients.remove(source));
    const backend = tcpConnect({ host: target.ip, port: target.port, allowHalfOpen: true });
    const timer = setTimeout(() => backend.destroy(new Error('connect timeout')), CONNECT_TIMEOUT_MS);
    backend.once('connect', () => clearTimeout(timer));
    for (const [socket, other] of [
      [client, backend],
      [backend, client],
    ] as const) {
      open.add(socket);
      socket.on('error', (error) => {
        log.v(4, 'forwarded stream failed', { target: `${target.ip}:${target.port}`, error });
        resetSocket(other);
      });
      socket.on('close', () => {
        clearTimeout(timer);
        open.delete(socket);
        other.destroySoon();
      });
      socket.pipe(other);
    }
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, ...(address === undefined ? {} : { host: address }) }, () => {
      server.off('error', reject);
      server.on('error', (error) => log.warn('service listener failed', { address, port, error }));
      resolve({
        close: () =>
          new Promise((done) => {
            for (const socket of open) socket.destroy();
            server.close(() => done());
          }),
      });
    });
  });
}

interface UdpFlow {
  readonly socket: UdpSocket;
  readonly client: string;
  timer: NodeJS.Timeout;
}

function listenUdp(
  address: string | undefined,
  port: number,
  pick: PickTarget,
  { log, limits }: Bounds,
): Promise<Listener> {
  const server = createSocket({ type: 'udp4', reuseAddr: true });
  const flows = new Map<string, UdpFlow>();
  const clients = new Clients();
  const drop = (key: string, flow: UdpFlow): void => {
    clearTimeout(flow.timer);
    if (!flows.delete(key)) return;
    clients.remove(flow.client);
    flow.socket.close();
  };
  const openFlow = (key: string, client: RemoteInfo): UdpFlow | undefined => {
    const isFull = flows.size >= limits.udp || clients.has(client.address) >= limits.perClient;
    const target = isFull ? undefined : pick(client.address);
    if (target === undefined) return undefined;
    clients.add(client.address);
    const socket = createSocket('udp4');
    const timer = setTimeout(() => drop(key, flow), UDP_IDLE_MS);
    const flow: UdpFlow = { socket, client: client.address, timer };
    flows.set(key, flow);
    socket.connect(target.port, target.ip);
    socket.on('message', (message) => {
      flow.timer.refresh();
      server.send(message, client.port, client.address);
    });
    socket.on('error', (error) => {
      log.v(4, 'forwarded datagrams failed', { target: `${target.ip}:${target.port}`, error });
      drop(key, flow);
    });
    return flow;
  };
  server.on('message', (message, client) => {
    // Node throws when a response is sent to port 0, which only forged packets have as source.
    if (client.port === 0) return;
    const key = `${client.address}:${client.port}`;
    const known = flows.get(key);
    if (known !== undefined) {
      known.timer.refresh();
      known.socket.send(message);
      return;
    }
    const flow = openFlow(key, client);
    flow?.socket.once('connect', () => flow.socket.send(message));
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.bind({ port, ...(address === undefined ? {} : { address }) }, () => {
      server.off('error', reject);
      server.on('error', (error) => log.warn('service listener failed', { address, port, error }));
      resolve({
        close: () =>
          new Promise((done) => {
            for (const [key, flow] of flows) drop(key, flow);
            server.close(() => done());
          }),
      });
    });
  });
}

function plainAddress(address: string | undefined): string {
  return (address ?? '').replace(/^::ffff:/, '');
}

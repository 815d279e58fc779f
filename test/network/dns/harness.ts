/** Cluster DNS with real sockets on loopback and manually fed informers, and upstream name servers. */
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import { type Answer, decode, encode, type Packet } from 'dns-packet';
import type { KubeObject, ResourceType } from '../../../src/api/meta/object.ts';
import { objectKey } from '../../../src/api/meta/object.ts';
import { createLog } from '../../../src/base/log.ts';
import type { ChangeHandler, Informer, InformerFactory } from '../../../src/client/types.ts';
import { systemClock, systemRandom } from '../../../src/host/process/process.ts';
import { createDnsServer, type DnsConfig, type DnsServer } from '../../../src/network/dns/index.ts';
import { createDnsCodec } from '../../../src/network/dns/io/codec.ts';
import { createDnsSockets } from '../../../src/network/dns/io/sockets.ts';
import { createUpstreamExchange } from '../../../src/network/dns/io/upstream.ts';
import type { UpstreamServer } from '../../../src/network/dns/port.ts';
import { freePort } from '../../support/ports.ts';

export interface FedInformer<T extends KubeObject> extends Informer<T> {
  set(object: T): void;
  remove(key: string): void;
  sync(): void;
}

/** The informer contract over a plain map. */
function fedInformer<T extends KubeObject>(type: ResourceType<T>): FedInformer<T> {
  const objects = new Map<string, T>();
  const handlers = new Set<ChangeHandler<T>>();
  const synced = Promise.withResolvers<void>();
  let isSynced = false;
  return {
    type,
    start: () => {},
    synced: synced.promise,
    get hasSynced() {
      return isSynced;
    },
    listed: synced.promise,
    get hasListed() {
      return isSynced;
    },
    get: (key) => objects.get(key),
    list: () => [...objects.values()],
    byIndex: () => [],
    addIndex: () => {},
    onChange: (handler) => {
      handlers.add(handler);
      for (const object of objects.values()) handler.added?.(object);
      return () => handlers.delete(handler);
    },
    stop: async () => {},
    set: (object) => {
      const old = objects.get(objectKey(object));
      objects.set(objectKey(object), object);
      for (const handler of handlers) {
        if (old === undefined) handler.added?.(object);
        else handler.updated?.(object, old);
      }
    },
    remove: (key) => {
      const old = objects.get(key);
      objects.delete(key);
      if (old !== undefined) for (const handler of handlers) handler.deleted?.(old);
    },
    sync: () => {
      isSynced = true;
      synced.resolve();
    },
  };
}

export interface Fed {
  readonly factory: InformerFactory;
  of<T extends KubeObject>(type: ResourceType<T>): FedInformer<T>;
}

export function fedInformers(): Fed {
  const known = new Map<string, unknown>();
  const of = <T extends KubeObject>(type: ResourceType<T>): FedInformer<T> => {
    const found = known.get(type.plural) ?? fedInformer(type);
    known.set(type.plural, found);
    return found as FedInformer<T>;
  };
  return { of, factory: { informer: of, startAndSync: async () => {}, stop: async () => {} } };
}

export interface Running {
  readonly server: DnsServer;
  readonly port: number;
  readonly fed: Fed;
  readonly lines: string[];
  /** Operations on the service link. */
  readonly bound: string[];
  setHostServers(servers: readonly UpstreamServer[]): void;
  stop(): Promise<void>;
}

export async function startDns(
  config: Partial<DnsConfig> = {},
  host: readonly UpstreamServer[] = [],
): Promise<Running> {
  const fed = fedInformers();
  const lines: string[] = [];
  const bound: string[] = [];
  let port = 0;
  let hostServers = host;
  let changed = (): void => {};
  const sockets = createDnsSockets();
  const server = createDnsServer({
    config: {
      zone: 'cluster.local',
      ttlSeconds: 5,
      addresses: ['127.0.0.1'],
      port: 0,
      ranges: ['10.128.0.0/14', '172.30.0.0/16'],
      podRanges: ['10.128.0.0/14'],
      hostAddresses: () => ['127.0.0.1'],
      upstreams: undefined,
      stubDomains: new Map(),
      ...config,
    },
    informers: fed.factory,
    sockets: {
      async listen(address, wanted, handler) {
        // A free UDP port may be in use for TCP.
        const listener = await sockets.listen(address, wanted === 0 ? await freePort() : wanted, handler);
        port = listener.port;
        return listener;
      },
    },
    exchange: createUpstreamExchange(),
    codec: createDnsCodec(),
    link: {
      bind: async (addresses) => void bound.push(...addresses),
      isBound: async (addresses) => addresses.every((each) => bound.includes(each)),
      remove: async () => void bound.splice(0),
    },
    hostServers: {
      read: async () => hostServers,
      onChange: (listener) => {
        changed = listener;
        return () => {};
      },
    },
    clock: systemClock,
    random: systemRandom,
    log: createLog({ component: 'dns', level: 10, sink: { write: (line) => lines.push(line) }, nowMs: Date.now }),
  });
  await server.start();
  return {
    server,
    port,
    fed,
    lines,
    bound,
    setHostServers(servers) {
      hostServers = servers;
      changed();
    },
    stop: () => server.stop(),
  };
}

export interface NameServer extends UpstreamServer {
  /** Queried names, with the transport. */
  readonly queries: string[];
  answer: (
    question: { name: string; type: string },
    transport: 'udp' | 'tcp',
    query: Packet,
  ) => Partial<Packet> | 'silent';
  close(): Promise<void>;
}

/** External name server. */
export async function startNameServer(answer: NameServer['answer']): Promise<NameServer> {
  const udp = createSocket('udp4');
  const port = await freePort();
  await new Promise<void>((resolve) => udp.bind(port, '127.0.0.1', resolve));
  const respond = (message: Buffer, transport: 'udp' | 'tcp'): Buffer | undefined => {
    const query = decode(message);
    const [question] = query.questions ?? [];
    if (question === undefined) return undefined;
    server.queries.push(`${transport} ${question.name} ${question.type}`);
    const made = server.answer(question, transport, query);
    if (made === 'silent') return undefined;
    return encode({ type: 'response', id: query.id ?? 0, questions: [question], flags: 0x0180, ...made });
  };
  udp.on('message', (message, client) => {
    const response = respond(message, 'udp');
    if (response !== undefined) udp.send(response, client.port, client.address);
  });
  const tcp = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (data: Buffer) => {
      const response = respond(data.subarray(2), 'tcp');
      if (response === undefined) return;
      const length = Buffer.alloc(2);
      length.writeUInt16BE(response.length);
      socket.write(Buffer.concat([length, response]));
    });
  });
  await new Promise<void>((resolve) => tcp.listen(port, '127.0.0.1', resolve));
  const server: NameServer = {
    address: '127.0.0.1',
    port,
    queries: [],
    answer,
    close: async () => {
      await Promise.all([new Promise<void>((done) => udp.close(() => done())), new Promise((done) => tcp.close(done))]);
    },
  };
  return server;
}

export const address = (name: string, data: string, ttl = 60): Answer => ({ name, type: 'A', ttl, data });

/** Sends one datagram and returns the response. Undefined after a timeout. */
export async function ask(
  port: number,
  message: Uint8Array,
  ms = 2_000,
  from = '127.0.0.1',
): Promise<Buffer | undefined> {
  const socket = createSocket('udp4');
  await new Promise<void>((resolve) => socket.bind(0, from, resolve));
  try {
    return await new Promise((resolve) => {
      const timer = setTimeout(() => resolve(undefined), ms);
      socket.once('message', (response) => {
        clearTimeout(timer);
        resolve(response);
      });
      socket.send(message, port, '127.0.0.1');
    });
  } finally {
    socket.close();
  }
}

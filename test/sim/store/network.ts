import type { DialPeer, PeerChannel, PeerStream } from '../../../src/store/disk/port.ts';
import type { RpcListener, RpcService } from '../../../src/wire/grpc/port.ts';
import { RpcCode, wholeMessage } from '../../../src/wire/grpc/port.ts';
import type { Life } from './process.ts';
import type { World } from './world.ts';

/** A reachable endpoint: the process of a member while it listens. */
export interface Listening {
  readonly name: string;
  readonly life: Life;
  readonly service: RpcService;
}

const lost = (why: string): Error => Object.assign(new Error(why), { code: RpcCode.unavailable });
const SYN_MS = 200;
const CONNECT_MS = 2000;

/** Links between hosts. A connection delivers in order, with a delay on bad links, until it breaks. */
export class Network {
  /** Share of segments that must be retransmitted. */
  loss = 0;
  delayMs = 4;
  /** Time after which a connection without progress breaks. */
  patienceMs = 1000;
  readonly listening = new Map<string, Listening>();
  /** Addresses of hosts without power, where connections time out instead of being refused. */
  readonly silent = new Set<string>();
  readonly connections = new Set<Connection>();
  /** Client APIs that are no longer reachable. */
  readonly closed = new WeakSet<RpcService>();
  readonly world: () => World;
  readonly #cut = new Set<string>();

  constructor(world: () => World) {
    this.world = world;
  }

  cut(from: string, to: string): void {
    this.#cut.add(`${from}>${to}`);
  }

  heal(): void {
    this.#cut.clear();
  }

  open(from: string, to: string): boolean {
    return !this.#cut.has(`${from}>${to}`);
  }

  delay(): number {
    const { random } = this.world();
    const once = random.between(0.2, this.delayMs);
    return this.loss > 0 && random.chance(this.loss) ? once + random.between(50, 250) : once;
  }

  /** Breaks a random connection. */
  breakOne(): void {
    this.world()
      .random.pick([...this.connections])
      ?.break('connection reset');
  }

  /** Closes all connections of a process that has ended. */
  ended(life: Life): void {
    for (const connection of [...this.connections]) if (connection.involves(life)) connection.break('peer is gone');
    for (const [url, { life: listener }] of this.listening) if (listener === life) this.listening.delete(url);
  }

  listener(name: string, url: string, life: Life): RpcListener {
    return {
      listen: async (service) => {
        this.listening.set(url, { name, life, service });
        return { host: name, port: 1 };
      },
      drain: async () => {},
      close: async () => {
        if (this.listening.get(url)?.life !== life) return;
        this.listening.delete(url);
        for (const connection of [...this.connections]) if (connection.server.life === life) connection.break('closed');
      },
    };
  }

  dialer(name: string, life: Life, hostOf: (url: string) => string): DialPeer {
    return (urls, refused) => new Channel(this, name, life, urls[0] ?? '', hostOf, refused);
  }
}

type Direction = 'out' | 'back';

/** Ordered, reliable byte streams in both directions, until the connection breaks. */
class Connection {
  readonly client: { readonly name: string; readonly life: Life };
  readonly server: Listening;
  broken = false;
  readonly #network: Network;
  readonly #waiting = { out: [] as Array<() => void>, back: [] as Array<() => void> };
  readonly #lastAt = { out: 0, back: 0 };
  #stalledAt: number | undefined;
  readonly #onBroken = new Set<(why: string) => void>();
  readonly #onServerBroken = new Set<() => void>();

  constructor(network: Network, client: Connection['client'], server: Listening) {
    this.#network = network;
    this.client = client;
    this.server = server;
    network.connections.add(this);
  }

  involves(life: Life): boolean {
    return this.client.life === life || this.server.life === life;
  }

  onBroken(listener: (why: string) => void): () => void {
    this.#onBroken.add(listener);
    return () => this.#onBroken.delete(listener);
  }

  onServerBroken(listener: () => void): () => void {
    this.#onServerBroken.add(listener);
    return () => this.#onServerBroken.delete(listener);
  }

  send(direction: Direction, deliver: () => void): void {
    if (this.broken) return;
    const { timeline } = this.#network.world();
    const at = Math.max(timeline.nowMs + this.#network.delay(), this.#lastAt[direction]);
    this.#lastAt[direction] = at;
    timeline.after(at - timeline.nowMs, () => {
      this.#waiting[direction].push(deliver);
      this.#flow(direction);
    });
  }

  #flow(direction: Direction): void {
    if (this.broken || this.#waiting[direction].length === 0) return;
    const { timeline } = this.#network.world();
    const [from, to] =
      direction === 'out' ? [this.client.name, this.server.name] : [this.server.name, this.client.name];
    // A cut in either direction stalls the stream, because acknowledgements are lost.
    if (!this.#network.open(from, to)) {
      this.#stalledAt ??= timeline.nowMs;
      if (timeline.nowMs - this.#stalledAt > this.#network.patienceMs) this.break('connection timed out');
      else timeline.after(50, () => this.#flow(direction));
      return;
    }
    this.#stalledAt = undefined;
    const receiver = direction === 'out' ? this.server.life : this.client.life;
    for (const deliver of this.#waiting[direction].splice(0)) receiver.run(deliver);
  }

  break(why: string): void {
    if (this.broken) return;
    this.broken = true;
    this.#network.connections.delete(this);
    const { timeline } = this.#network.world();
    const tell = this.#network.open(this.server.name, this.client.name) ? this.#network.delay() : 500;
    timeline.after(tell, () => {
      for (const listener of this.#onBroken) this.client.life.run(() => listener(why));
    });
    timeline.after(tell, () => {
      for (const listener of this.#onServerBroken) this.server.life.run(listener);
    });
  }
}

interface Waiting {
  start(connection: Connection): void;
}

/**
 * Models the channel of wire/grpc: it connects on demand, reconnects by itself, and buffers early messages of a stream.
 */
class Channel implements PeerChannel {
  readonly #network: Network;
  readonly #name: string;
  readonly #life: Life;
  readonly #url: string;
  readonly #hostOf: (url: string) => string;
  readonly #refused: () => void;
  #connection: Connection | undefined;
  #connecting = false;
  #closed = false;
  #failures = 0;
  #waiting = new Set<Waiting>();

  constructor(
    network: Network,
    name: string,
    life: Life,
    url: string,
    hostOf: (url: string) => string,
    refused: () => void,
  ) {
    this.#network = network;
    this.#name = name;
    this.#life = life;
    this.#url = url;
    this.#hostOf = hostOf;
    this.#refused = refused;
  }

  get connected(): boolean {
    return this.#connection !== undefined && !this.#connection.broken;
  }

  unary(path: string, message: Uint8Array, timeoutMs: number): Promise<Uint8Array> {
    const bytes = Buffer.from(message);
    const { timeline } = this.#network.world();
    return new Promise((resolve, reject) => {
      let over = false;
      const waiting: Waiting = {
        start: (connection) => {
          const off = connection.onBroken((why) => finish(() => reject(lost(why))));
          const answer = (settle: () => void): void =>
            connection.send('back', () => {
              off();
              finish(settle);
            });
          connection.send('out', () => {
            const handler = connection.server.service.unary(path);
            if (handler === undefined) {
              answer(() => reject(lost('unimplemented')));
              return;
            }
            handler(bytes, {
              metadata: () => undefined,
              peerCommonName: () => '',
              reply: (body) => {
                const copy = Buffer.from(wholeMessage(body));
                answer(() => resolve(copy));
              },
              fail: (code, text) => answer(() => reject(Object.assign(new Error(text), { code }))),
              whenCancelled: () => {},
            });
          });
        },
      };
      const finish = (settle: () => void): void => {
        if (over) return;
        over = true;
        this.#waiting.delete(waiting);
        settle();
      };
      timeline.after(timeoutMs, () => this.#life.run(() => finish(() => reject(lost('deadline exceeded')))));
      this.#whenConnected(waiting);
    });
  }

  stream(
    path: string,
    events: { message(message: Uint8Array): void; ended(error: Error | undefined): void },
  ): PeerStream {
    let connection: Connection | undefined;
    let over = false;
    let early: Uint8Array[] = [];
    let handler: ReturnType<NonNullable<ReturnType<RpcService['stream']>>> | undefined;
    const end = (error: Error | undefined): void => {
      if (over) return;
      over = true;
      events.ended(error);
    };
    const closeServer = (): void => {
      handler?.closed();
      handler = undefined;
    };
    const send = (message: Uint8Array): void => {
      if (over) return;
      const copy = Buffer.from(message);
      if (connection === undefined) early.push(copy);
      else connection.send('out', () => handler?.message(copy));
    };
    const waiting: Waiting = {
      start: (opened) => {
        if (over) return;
        connection = opened;
        opened.onBroken((why) => end(lost(why)));
        opened.onServerBroken(closeServer);
        opened.send('out', () => {
          handler = opened.server.service.stream(path)?.({
            metadata: () => undefined,
            peerCommonName: () => '',
            pause: () => {},
            resume: () => {},
            send: (...parts) => {
              const message = Buffer.concat(parts);
              opened.send('back', () => {
                if (!over) events.message(message);
              });
              return true;
            },
            end: (code = RpcCode.ok, text = '') => {
              opened.send('back', () =>
                end(code === RpcCode.ok ? undefined : Object.assign(new Error(text), { code })),
              );
              closeServer();
            },
          });
        });
        const kept = early;
        early = [];
        for (const message of kept) send(message);
      },
    };
    this.#whenConnected(waiting);
    return {
      send,
      cancel: () => {
        if (over) return;
        over = true;
        this.#waiting.delete(waiting);
        connection?.send('out', closeServer);
      },
    };
  }

  close(): void {
    this.#closed = true;
    this.#waiting.clear();
    this.#connection?.break('client is closed');
  }

  #whenConnected(waiting: Waiting): void {
    if (this.#closed) return;
    if (this.#connection !== undefined && !this.#connection.broken) waiting.start(this.#connection);
    else {
      this.#waiting.add(waiting);
      this.#connect();
    }
  }

  #connect(): void {
    if (this.#connecting || this.#closed) return;
    this.#connecting = true;
    const { timeline } = this.#network.world();
    const gaveUpAt = timeline.nowMs + CONNECT_MS;
    const host = this.#hostOf(this.#url);
    const attempt = (): void => {
      const reachable = this.#network.open(this.#name, host) && this.#network.open(host, this.#name);
      const target = this.#network.listening.get(this.#url);
      if (!reachable || this.#network.silent.has(host) || target?.life.paused) {
        if (timeline.nowMs >= gaveUpAt) this.#failed();
        else timeline.after(SYN_MS, () => this.#life.run(attempt));
      } else if (target === undefined) {
        this.#refused();
        this.#failed();
      } else this.#established(target);
    };
    timeline.after(2 * this.#network.delay(), () => this.#life.run(attempt));
  }

  #established(target: Listening): void {
    this.#connecting = false;
    this.#failures = 0;
    if (this.#closed) return;
    const connection = new Connection(this.#network, { name: this.#name, life: this.#life }, target);
    this.#connection = connection;
    connection.onBroken(() => {
      if (this.#connection === connection) this.#connection = undefined;
      if (this.#waiting.size > 0) this.#connect();
    });
    for (const waiting of [...this.#waiting]) {
      this.#waiting.delete(waiting);
      waiting.start(connection);
    }
  }

  #failed(): void {
    this.#failures += 1;
    const pause = Math.min(20 * 2 ** Math.min(this.#failures, 5), 200);
    this.#network.world().timeline.after(pause, () =>
      this.#life.run(() => {
        this.#connecting = false;
        if (this.#waiting.size > 0) this.#connect();
      }),
    );
  }
}

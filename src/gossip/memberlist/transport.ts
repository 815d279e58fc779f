/**
 * Gossip transport compatible with HashiCorp's memberlist: datagrams and streams on one port number, so that unmodified
 * Serf agents can join.
 */
import { createSocket, type Socket as DatagramSocket } from 'node:dgram';
import { createConnection, createServer, isIPv6, type Server, type Socket } from 'node:net';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { PeerAddress, RingState } from '../core/port.ts';
import type { RingHandler, RingTransport } from '../membership/port.ts';
import { canonicalIp } from './addresses.ts';
import { InboundStreams } from './inbound.ts';
import type { Keyring } from './keyring.ts';
import { labelBytes } from './label.ts';
import { messageType, typed } from './messages.ts';
import { openPacket, packetOverhead, type Sealing, sealPacket } from './packet.ts';
import { encodePushPull, STREAM_LIMITS, type StreamMessage, StreamReader, sealStream } from './stream.ts';

export interface MemberlistOptions {
  /** Address on which to listen. Port 0 selects a free port. */
  readonly bind: PeerAddress;
  /** Without a keyring, every host on the network can read and forge messages. */
  readonly keyring: Keyring | undefined;
  /** Label of the ring; rings with different labels ignore each other. Older agents support only the empty label. */
  readonly label: string;
  readonly log: Log;
}

/** Maximum size of a datagram, which fits into an Ethernet frame. Source: memberlist's `UDPBufferSize`. */
const DATAGRAM_BYTES = 1400;
const RECEIVE_BUFFER_BYTES = 1024 * 1024;
const INBOUND_LIMITS = { streams: 64, bytes: 32 * 1024 * 1024 };
const STREAM_TIMEOUT_MS = 10_000;
const FREE_PORT_ATTEMPTS = 10;

export function createMemberlistTransport(options: MemberlistOptions): RingTransport {
  return new MemberlistTransport(options);
}

class MemberlistTransport implements RingTransport {
  readonly #options: MemberlistOptions;
  readonly #sealing: Sealing;
  readonly #log: Log;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #datagrams: DatagramSocket | undefined;
  readonly #inbound: InboundStreams;
  #stopped = false;
  readonly packetBytes: number;

  constructor(options: MemberlistOptions) {
    this.#options = options;
    this.#sealing = { keyring: options.keyring, label: labelBytes(options.label) };
    this.#log = options.log;
    this.#inbound = new InboundStreams(INBOUND_LIMITS, (socket) => {
      this.#log.v(2, 'stream closed: too many streams', { from: `${socket.remoteAddress}:${socket.remotePort}` });
      socket.destroy();
    });
    this.packetBytes = DATAGRAM_BYTES - packetOverhead(this.#sealing);
  }

  async start(handler: RingHandler): Promise<PeerAddress> {
    const address = await this.#listen(handler);
    this.#datagrams?.on('error', (error) => this.#log.v(2, 'datagram socket failed', { error: messageOf(error) }));
    this.#server?.on('error', (error) => this.#log.v(2, 'stream socket failed', { error: messageOf(error) }));
    try {
      this.#datagrams?.setRecvBufferSize(RECEIVE_BUFFER_BYTES);
    } catch (error) {
      this.#log.v(4, 'receive buffer not enlarged', { error: messageOf(error) });
    }
    return address;
  }

  send(to: PeerAddress, parts: readonly Uint8Array[], peerProtocol: number): void {
    // Only forged packets have source port 0. Node would throw for this destination port.
    if (this.#stopped || to.port === 0) return;
    // Errors are ignored: the protocol tolerates loss, and probes detect an unreachable peer.
    this.#datagrams?.send(sealPacket(parts, peerProtocol, this.#sealing), to.port, to.ip, () => {});
  }

  async exchange(to: PeerAddress, ours: RingState, timeoutMs: number): Promise<RingState> {
    const answer = await this.#exchange(to, sealStream(encodePushPull(ours), this.#sealing), timeoutMs);
    if (answer.kind === 'push-pull') return answer.state;
    const reason = answer.kind === 'error' ? answer.text : `answered with "${answer.kind}"`;
    throw new CodedError('peer-refused', `${to.ip}:${to.port} refused to exchange tables: ${reason}`);
  }

  async ping(
    to: PeerAddress,
    { seq, node }: { readonly seq: number; readonly node: string },
    timeoutMs: number,
  ): Promise<boolean> {
    const question = sealStream(typed(messageType.ping, { SeqNo: seq, Node: node }), this.#sealing);
    return this.#exchange(to, question, timeoutMs).then(
      (answer) => answer.kind === 'ack' && answer.seq === seq,
      () => false,
    );
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const socket of this.#sockets) socket.destroy();
    const streams = this.#server;
    const packets = this.#datagrams;
    this.#server = undefined;
    this.#datagrams = undefined;
    if (streams !== undefined) await new Promise<void>((resolve) => streams.close(() => resolve()));
    if (packets !== undefined) await new Promise<void>((resolve) => packets.close(() => resolve()));
  }

  #onDatagram(handler: RingHandler, bytes: Uint8Array, ip: string, port: number): void {
    const from = canonicalIp(ip);
    if (from === undefined) return;
    const messages = openPacket(bytes, this.#sealing);
    if (messages === undefined) {
      this.#log.v(4, 'foreign datagram dropped', { from: `${ip}:${port}`, bytes: bytes.length });
      return;
    }
    if (messages.length > 0) handler.packet({ ip: from, port }, messages);
  }

  #respond(handler: RingHandler, socket: Socket, message: StreamMessage): void {
    switch (message.kind) {
      case 'push-pull':
        socket.end(sealStream(encodePushPull(handler.exchange(message.state)), this.#sealing));
        break;
      case 'ping':
        if (message.node === '' || handler.answersTo(message.node))
          socket.end(
            sealStream(
              typed(messageType.ackResponse, { SeqNo: message.seq, Payload: new Uint8Array() }),
              this.#sealing,
            ),
          );
        else socket.destroy();
        break;
      case 'user':
        socket.end();
        handler.user(message.payload);
        break;
      default:
        socket.destroy();
    }
  }

  #onStream(handler: RingHandler, socket: Socket): void {
    const from = `${socket.remoteAddress ?? '?'}:${socket.remotePort ?? 0}`;
    this.#inbound.add(socket);
    this.#sockets.add(socket);
    // The time limit is for the whole stream. An idle time limit would let a peer occupy a slot by sending bytes
    // slowly.
    const timer = setTimeout(() => socket.destroy(), STREAM_TIMEOUT_MS);
    timer.unref();
    const reader = new StreamReader(this.#sealing, STREAM_LIMITS);
    let done = false;
    socket.on('data', (chunk) => {
      if (done || typeof chunk === 'string') return;
      this.#inbound.received(socket, chunk.length);
      try {
        const message = reader.push(chunk);
        if (message === undefined) return;
        done = true;
        this.#respond(handler, socket, message);
      } catch (error) {
        done = true;
        this.#log.v(2, 'stream dropped', { from, reason: messageOf(error) });
        socket.destroy();
      }
    });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      clearTimeout(timer);
      this.#sockets.delete(socket);
      this.#inbound.remove(socket);
    });
  }

  /** Sends one request over a new stream and returns the response. */
  #exchange(to: PeerAddress, question: Uint8Array, timeoutMs: number): Promise<StreamMessage> {
    return new Promise((resolve, reject) => {
      const where = `${to.ip}:${to.port}`;
      if (this.#stopped) {
        reject(new CodedError('peer-unreachable', `${where} was not contacted: the agent is leaving the ring`));
        return;
      }
      const socket = createConnection({ host: to.ip, port: to.port });
      this.#sockets.add(socket);
      const reader = new StreamReader(this.#sealing, STREAM_LIMITS);
      const fail = (code: string, reason: string, cause?: unknown): void => {
        reject(new CodedError(code, `${where} ${reason}`, { cause }));
        socket.destroy();
      };
      const timer = setTimeout(() => fail('peer-timeout', `did not answer within ${timeoutMs} ms`), timeoutMs);
      socket.on('connect', () => socket.write(question));
      socket.on('data', (chunk) => {
        if (typeof chunk === 'string') return;
        try {
          const message = reader.push(chunk);
          if (message === undefined) return;
          resolve(message);
          socket.end();
        } catch (error) {
          fail('peer-refused', `the response is not valid: ${messageOf(error)}`, error);
        }
      });
      socket.on('error', (error) => fail('peer-unreachable', `cannot be reached: ${messageOf(error)}`, error));
      socket.on('close', () => {
        clearTimeout(timer);
        this.#sockets.delete(socket);
        // If a response has been received, this rejection has no effect.
        reject(
          new CodedError(
            'peer-refused',
            `${where} closed the stream without a response; compare the keyrings and labels of both hosts`,
          ),
        );
      });
    });
  }

  async #listen(handler: RingHandler): Promise<PeerAddress> {
    const { ip, port } = this.#options.bind;
    for (let attempt = 1; ; attempt++) {
      const streams = createServer((socket) => this.#onStream(handler, socket));
      const packets = createSocket(isIPv6(ip) ? 'udp6' : 'udp4', (bytes, peer) =>
        this.#onDatagram(handler, bytes, peer.address, peer.port),
      );
      try {
        const actual = await bindStreams(streams, ip, port);
        await bindDatagrams(packets, ip, actual);
        this.#server = streams;
        this.#datagrams = packets;
        return { ip: canonicalIp(ip) ?? ip, port: actual };
      } catch (error) {
        streams.close();
        packets.close();
        // The port that was selected for streams may be in use for datagrams, so another port is tried.
        if (port === 0 && attempt < FREE_PORT_ATTEMPTS) continue;
        throw new CodedError('address-in-use', `cannot listen for gossip on ${ip}:${port}: ${messageOf(error)}`, {
          cause: error,
        });
      }
    }
  }
}

function bindStreams(server: Server, ip: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: ip, port, exclusive: true }, () => {
      server.off('error', reject);
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : port);
    });
  });
}

function bindDatagrams(socket: DatagramSocket, ip: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.bind({ address: ip, port, exclusive: true }, () => {
      socket.off('error', reject);
      resolve();
    });
  });
}

/**
 * The ring's wire as HashiCorp's memberlist has it: datagrams and streams on one port number, so that stock agents can take part.
 */
import { createSocket, type Socket as DatagramSocket } from 'node:dgram';
import { createConnection, createServer, isIPv6, type Server, type Socket } from 'node:net';
import { CodedError, messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { RingHandler, RingTransport } from '../../../components/membership/port.ts';
import type { PeerAddress, RingState } from '../../../core/gossip/port.ts';
import { canonicalIp } from './addresses.ts';
import { InboundStreams } from './inbound.ts';
import type { Keyring } from './keyring.ts';
import { labelBytes } from './label.ts';
import { messageType, typed } from './messages.ts';
import { openPacket, packetOverhead, type Sealing, sealPacket } from './packet.ts';
import { encodePushPull, type StreamLimits, type StreamMessage, StreamReader, sealStream } from './stream.ts';

export { Keyring } from './keyring.ts';
export { createKeyring, newKeyringText, type OpenedKeyring, openKeyring } from './keyring-file.ts';
export { encodeMessage } from './messages.ts';
export { resolvePeer } from './peer.ts';
export { serfCodec } from './serf.ts';

export interface MemberlistOptions {
  /** Where to listen; port 0 takes a free one. */
  readonly bind: PeerAddress;
  /** Without keys everything is readable and forgeable by anybody on the network. */
  readonly keyring: Keyring | undefined;
  /** Rings with different labels ignore each other; empty for none, which is all that older agents know. */
  readonly label: string;
  readonly log: Log;
}

/** memberlist's `UDPBufferSize`: fits every path that Ethernet reaches. */
const DATAGRAM_BYTES = 1400;
const RECEIVE_BUFFER_BYTES = 1024 * 1024;
const STREAM_LIMITS: StreamLimits = { maxBytes: 8 * 1024 * 1024, maxRows: 16_384 };
const INBOUND_LIMITS = { streams: 64, bytes: 32 * 1024 * 1024 };
const STREAM_TIMEOUT_MS = 10_000;
const FREE_PORT_ATTEMPTS = 10;

export function createMemberlistTransport(options: MemberlistOptions): RingTransport {
  const sealing: Sealing = { keyring: options.keyring, label: labelBytes(options.label) };
  const log = options.log;
  const sockets = new Set<Socket>();
  let server: Server | undefined;
  let datagrams: DatagramSocket | undefined;
  const inbound = new InboundStreams(INBOUND_LIMITS, (socket) => {
    log.v(2, 'closed a stream: too many are open', { from: `${socket.remoteAddress}:${socket.remotePort}` });
    socket.destroy();
  });
  let stopped = false;

  const onDatagram = (handler: RingHandler, bytes: Uint8Array, ip: string, port: number): void => {
    const from = canonicalIp(ip);
    if (from === undefined) return;
    const messages = openPacket(bytes, sealing);
    if (messages === undefined) {
      log.v(4, 'dropped a datagram that is not of this ring', { from: `${ip}:${port}`, bytes: bytes.length });
      return;
    }
    if (messages.length > 0) handler.packet({ ip: from, port }, messages);
  };

  const respond = (handler: RingHandler, socket: Socket, message: StreamMessage): void => {
    switch (message.kind) {
      case 'push-pull':
        socket.end(sealStream(encodePushPull(handler.exchange(message.state)), sealing));
        break;
      case 'ping':
        if (message.node === '' || handler.answersTo(message.node))
          socket.end(
            sealStream(typed(messageType.ackResponse, { SeqNo: message.seq, Payload: new Uint8Array() }), sealing),
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
  };

  const onStream = (handler: RingHandler, socket: Socket): void => {
    const from = `${socket.remoteAddress ?? '?'}:${socket.remotePort ?? 0}`;
    inbound.add(socket);
    sockets.add(socket);
    // Not an idle time-out: a trickle of bytes must not hold a place either.
    const timer = setTimeout(() => socket.destroy(), STREAM_TIMEOUT_MS);
    timer.unref();
    const reader = new StreamReader(sealing, STREAM_LIMITS);
    let done = false;
    socket.on('data', (chunk) => {
      if (done || typeof chunk === 'string') return;
      inbound.received(socket, chunk.length);
      try {
        const message = reader.push(chunk);
        if (message === undefined) return;
        done = true;
        respond(handler, socket, message);
      } catch (error) {
        done = true;
        log.v(2, 'dropped a stream', { from, reason: messageOf(error) });
        socket.destroy();
      }
    });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      clearTimeout(timer);
      sockets.delete(socket);
      inbound.remove(socket);
    });
  };

  /** One question over a stream of its own. */
  const ask = (to: PeerAddress, question: Uint8Array, timeoutMs: number): Promise<StreamMessage> =>
    new Promise((resolve, reject) => {
      const where = `${to.ip}:${to.port}`;
      if (stopped) {
        reject(new CodedError('peer-unreachable', `${where} was not asked: the ring is being left`));
        return;
      }
      const socket = createConnection({ host: to.ip, port: to.port });
      sockets.add(socket);
      const reader = new StreamReader(sealing, STREAM_LIMITS);
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
          fail('peer-refused', `answered something else: ${messageOf(error)}`, error);
        }
      });
      socket.on('error', (error) => fail('peer-unreachable', `cannot be reached: ${messageOf(error)}`, error));
      socket.on('close', () => {
        clearTimeout(timer);
        sockets.delete(socket);
        // Without effect when there was an answer.
        reject(
          new CodedError('peer-refused', `${where} closed the stream without an answer: is its key or label another?`),
        );
      });
    });

  const listen = async (handler: RingHandler): Promise<PeerAddress> => {
    const { ip, port } = options.bind;
    for (let attempt = 1; ; attempt++) {
      const streams = createServer((socket) => onStream(handler, socket));
      const packets = createSocket(isIPv6(ip) ? 'udp6' : 'udp4', (bytes, peer) =>
        onDatagram(handler, bytes, peer.address, peer.port),
      );
      try {
        const actual = await bindStreams(streams, ip, port);
        await bindDatagrams(packets, ip, actual);
        server = streams;
        datagrams = packets;
        return { ip: canonicalIp(ip) ?? ip, port: actual };
      } catch (error) {
        streams.close();
        packets.close();
        // A free port for streams may be taken for datagrams.
        if (port === 0 && attempt < FREE_PORT_ATTEMPTS) continue;
        throw new CodedError('address-in-use', `cannot listen for gossip on ${ip}:${port}: ${messageOf(error)}`, {
          cause: error,
        });
      }
    }
  };

  return {
    packetBytes: DATAGRAM_BYTES - packetOverhead(sealing),
    async start(handler) {
      const address = await listen(handler);
      datagrams?.on('error', (error) => log.v(2, 'datagram socket', { error: messageOf(error) }));
      server?.on('error', (error) => log.v(2, 'stream socket', { error: messageOf(error) }));
      try {
        datagrams?.setRecvBufferSize(RECEIVE_BUFFER_BYTES);
      } catch (error) {
        log.v(4, 'the receive buffer stays as it is', { error: messageOf(error) });
      }
      return address;
    },
    send(to, parts, peerProtocol) {
      if (stopped) return;
      // Loss is part of the protocol; an unreachable peer is found out by probing.
      datagrams?.send(sealPacket(parts, peerProtocol, sealing), to.port, to.ip, () => {});
    },
    async exchange(to, ours: RingState, timeoutMs) {
      const answer = await ask(to, sealStream(encodePushPull(ours), sealing), timeoutMs);
      if (answer.kind === 'push-pull') return answer.state;
      const reason = answer.kind === 'error' ? answer.text : `answered with "${answer.kind}"`;
      throw new CodedError('peer-refused', `${to.ip}:${to.port} refused to exchange tables: ${reason}`);
    },
    async ping(to, { seq, node }, timeoutMs) {
      const question = sealStream(typed(messageType.ping, { SeqNo: seq, Node: node }), sealing);
      return ask(to, question, timeoutMs).then(
        (answer) => answer.kind === 'ack' && answer.seq === seq,
        () => false,
      );
    },
    async stop() {
      stopped = true;
      for (const socket of sockets) socket.destroy();
      const streams = server;
      const packets = datagrams;
      server = undefined;
      datagrams = undefined;
      if (streams !== undefined) await new Promise<void>((resolve) => streams.close(() => resolve()));
      if (packets !== undefined) await new Promise<void>((resolve) => packets.close(() => resolve()));
    },
  };
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

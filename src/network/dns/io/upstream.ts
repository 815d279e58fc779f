/** Queries to other name servers, each from a random port, which makes forged responses harder. Source: RFC 5452. */
import { createSocket } from 'node:dgram';
import { connect, isIPv6 } from 'node:net';
import type { UpstreamExchange, UpstreamServer } from '../port.ts';

/** Times at which a datagram without a response is sent again, with the same identifier and from the same port. */
const RETRANSMIT_MS = [250, 700];

type Accept = (message: Uint8Array) => boolean;

export function createUpstreamExchange(): UpstreamExchange {
  return {
    exchange: (server, message, { transport, timeoutMs, accept }) =>
      transport === 'udp' ? overUdp(server, message, timeoutMs, accept) : overTcp(server, message, timeoutMs, accept),
  };
}

const timedOut = (ms: number): Error => new Error(`no answer in ${Math.round(ms)} ms`);

function overUdp(server: UpstreamServer, message: Uint8Array, timeoutMs: number, accept: Accept): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const socket = createSocket({ type: isIPv6(server.address) ? 'udp6' : 'udp4' });
    let ended = false;
    const end = (error: Error | undefined, response?: Uint8Array): void => {
      if (ended) return;
      ended = true;
      for (const each of timers) clearTimeout(each);
      socket.close();
      if (response === undefined) reject(error ?? new Error('no answer'));
      else resolve(response);
    };
    const timers = [setTimeout(() => end(timedOut(timeoutMs)), timeoutMs)];
    socket.on('error', (error) => end(error));
    socket.on('message', (response) => {
      if (accept(response)) end(undefined, response);
    });
    // A connected socket accepts only datagrams from its server and reports an unreachable one immediately.
    socket.connect(server.port, server.address, (error?: Error) => {
      if (error !== undefined && error !== null) end(error);
      else if (!ended) {
        socket.send(message);
        for (const ms of RETRANSMIT_MS) if (ms < timeoutMs) timers.push(setTimeout(() => socket.send(message), ms));
      }
    });
  });
}

function overTcp(server: UpstreamServer, message: Uint8Array, timeoutMs: number, accept: Accept): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: server.address, port: server.port, noDelay: true });
    let received: Buffer = Buffer.alloc(0);
    const end = (error: Error | undefined, response?: Uint8Array): void => {
      clearTimeout(timer);
      socket.destroy();
      if (response === undefined) reject(error ?? new Error('the connection ended'));
      else resolve(response);
    };
    const timer = setTimeout(() => end(timedOut(timeoutMs)), timeoutMs);
    socket.on('error', (error) => end(error));
    socket.on('close', () => end(undefined));
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      if (received.length < 2) return;
      const length = received.readUInt16BE(0);
      if (received.length < 2 + length) return;
      const response = received.subarray(2, 2 + length);
      end(
        accept(response) ? undefined : new Error('the response does not match the query'),
        accept(response) ? response : undefined,
      );
    });
    socket.once('connect', () => {
      const length = Buffer.allocUnsafe(2);
      length.writeUInt16BE(message.length);
      socket.write(Buffer.concat([length, message]));
    });
  });
}

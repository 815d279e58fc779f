/**
 * Sends log records by syslog: over UDP (RFC 5426), or over TCP or TLS with octet counting (RFC 6587, RFC 5425).
 * Receivers do not acknowledge messages over TCP, so messages that are in the buffers of a connection when it breaks
 * are lost.
 */

import { createSocket } from 'node:dgram';
import { connect as connectPlain, isIPv6, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { hostOfUrl } from '../../base/addresses/url-endpoint.ts';
import { messageOf } from '../../base/errors.ts';
import { syslogMessage } from '../core/encoders.ts';
import type { Receiver, SendResult } from '../port.ts';

export interface SyslogReceiverOptions {
  readonly url: string;
  readonly node: string;
  readonly authorities: () => Promise<readonly string[]>;
}

const PORTS: Readonly<Record<string, number>> = { udp: 514, tcp: 601, tls: 6514 };
const CONNECT_MS = 10_000;
const WRITE_MS = 30_000;
/** Maximum size of a datagram. Every receiver that follows RFC 5426 should accept datagrams of this size. */
const MAX_DATAGRAM = 2048;

export function createSyslogReceiver(options: SyslogReceiverOptions): Receiver {
  const [, protocol = '', rest = ''] = /^([a-z]+):\/\/(.*)$/.exec(options.url) ?? [];
  const host = hostOfUrl(new URL(`http://${rest}`));
  const port = /:(\d+)\/?$/.test(rest) ? Number(/:(\d+)\/?$/.exec(rest)?.[1]) : (PORTS[protocol] ?? 0);
  const target = { ...options, protocol, host, port };
  return protocol === 'udp' ? udpReceiver(target) : streamReceiver(target);
}

interface Target extends SyslogReceiverOptions {
  readonly protocol: string;
  readonly host: string;
  readonly port: number;
}

function udpReceiver({ node, host, port, url }: Target): Receiver {
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4');
  // Errors of a datagram are reported to the callback of its send, so this event is ignored.
  socket.on('error', () => undefined);
  socket.unref();
  return {
    async send(records): Promise<SendResult> {
      try {
        for (const record of records) {
          const message = Buffer.from(syslogMessage(record, node)).subarray(0, MAX_DATAGRAM);
          await new Promise<void>((resolve, reject) => {
            socket.send(message, port, host, (error) => (error === null ? resolve() : reject(error)));
          });
        }
        return { kind: 'sent', rejected: 0 };
      } catch (error) {
        return { kind: 'retry', problem: `${url}: ${messageOf(error)}` };
      }
    },
    close: () => socket.close(),
  };
}

function streamReceiver(target: Target): Receiver {
  let socket: Socket | undefined;
  const drop = (): void => {
    socket?.destroy();
    socket = undefined;
  };
  return {
    async send(records, signal): Promise<SendResult> {
      try {
        if (socket === undefined || socket.destroyed || socket.readyState !== 'open') {
          drop();
          socket = await connected(target, signal);
        }
        const frames = records.map((record) => {
          const message = Buffer.from(syslogMessage(record, target.node));
          return Buffer.concat([Buffer.from(`${message.length} `), message]);
        });
        await written(socket, Buffer.concat(frames), signal);
        return { kind: 'sent', rejected: 0 };
      } catch (error) {
        drop();
        return { kind: 'retry', problem: `${target.url}: ${messageOf(error)}` };
      }
    },
    close: drop,
  };
}

async function connected({ protocol, host, port, authorities }: Target, signal: AbortSignal): Promise<Socket> {
  const ca = protocol === 'tls' ? [...(await authorities())] : [];
  return new Promise((resolve, reject) => {
    const servername = isIPv6(host) || /^[\d.]+$/.test(host) ? {} : { servername: host };
    const socket = protocol === 'tls' ? connectTls({ host, port, ca, ...servername }) : connectPlain({ host, port });
    const timeout = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_MS)]);
    const fail = (): void => {
      socket.destroy(new Error('no connection in time'));
    };
    timeout.addEventListener('abort', fail, { once: true });
    socket.once('error', reject);
    socket.once(protocol === 'tls' ? 'secureConnect' : 'connect', () => {
      timeout.removeEventListener('abort', fail);
      socket.off('error', reject);
      // A broken connection is destroyed, so that the next write fails and a new connection is opened.
      socket.on('error', () => socket.destroy());
      socket.setKeepAlive(true, CONNECT_MS);
      socket.unref();
      // Receivers send no data, but reading is required to detect that the receiver has closed the connection.
      socket.resume();
      socket.on('end', () => socket.destroy());
      resolve(socket);
    });
  });
}

function written(socket: Socket, data: Buffer, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timeout = AbortSignal.any([signal, AbortSignal.timeout(WRITE_MS)]);
    const fail = (): void => {
      reject(new Error('the receiver does not read'));
    };
    timeout.addEventListener('abort', fail, { once: true });
    const closed = (): void => reject(new Error('the connection was closed'));
    socket.once('close', closed);
    socket.write(data, (error) => {
      timeout.removeEventListener('abort', fail);
      socket.off('close', closed);
      if (error === null || error === undefined) resolve();
      else reject(error);
    });
  });
}

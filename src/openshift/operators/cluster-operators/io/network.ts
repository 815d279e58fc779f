import { createSocket } from 'node:dgram';
import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { connect, isIPv6 } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ConnectionOptions, checkServerIdentity, connect as connectTls } from 'node:tls';
import { decode, encode } from 'dns-packet';
import type { Probe } from '../port.ts';

export interface HttpProbeOptions {
  readonly url: string;
  /** PEM of the authorities that verify the server; undefined disables verification. */
  readonly ca?: () => Promise<string | undefined>;
  readonly identity?: string;
  /** Whether a status shows that the component works. Default: below 400. */
  readonly accept?: (status: number) => boolean;
}

/**
 * An agent that verifies the certificate's identity itself. Node does not keep connections of requests with their own
 * `checkServerIdentity`.
 */
class IdentityAgent extends HttpsAgent {
  readonly #identity: string;

  constructor(identity: string, options: { readonly keepAlive: boolean; readonly maxSockets: number }) {
    super(options);
    this.#identity = identity;
  }

  override createConnection(options: ConnectionOptions): Duplex {
    return connectTls({
      ...options,
      checkServerIdentity: (_, certificate) => checkServerIdentity(this.#identity, certificate),
    });
  }
}

/** Sends a GET on a kept connection. */
export function httpProbe({ url, ca, identity = '127.0.0.1', accept = below400 }: HttpProbeOptions): Probe {
  const target = new URL(url);
  const secure = target.protocol === 'https:';
  const settings = { keepAlive: true, maxSockets: 1 };
  const agent = secure ? new IdentityAgent(identity, settings) : new HttpAgent(settings);
  let known: string | undefined;
  return async (signal) => {
    // Authorities may have changed since a failure, so read them for each new connection after one.
    const authorities = known ?? (await ca?.());
    known = undefined;
    const trust = authorities === undefined ? { rejectUnauthorized: false } : { ca: authorities };
    await new Promise<void>((resolve, reject) => {
      const send = secure ? httpsRequest : httpRequest;
      const request = send(target, { agent, ...(secure ? trust : {}) });
      // As an option of the request, the signal would also end the kept connection when it aborts later.
      const abort = (): void => void request.destroy(new Error('no answer'));
      if (signal.aborted) abort();
      signal.addEventListener('abort', abort, { once: true });
      request.once('close', () => signal.removeEventListener('abort', abort));
      request.once('response', (response) => {
        const { statusCode = 0 } = response;
        response.resume();
        response.once('error', reject);
        response.once('end', () => {
          signal.removeEventListener('abort', abort);
          known = authorities;
          if (accept(statusCode)) resolve();
          else reject(new Error(`HTTP ${statusCode}`));
        });
      });
      request.once('error', (error: NodeJS.ErrnoException) => reject(new Error(wordsOf(error), { cause: error })));
      request.end();
    });
  };
}

const below400 = (status: number): boolean => status < 400;

/** Succeeds if a connection is accepted. Retries once, because another backend of a service may answer. */
export function probeTcp(host: string, port: number): Probe {
  const attempt = (timeoutMs: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const socket = connect({ host, port, signal });
      socket.setTimeout(timeoutMs, () => socket.destroy(new Error('no answer')));
      socket.once('connect', () => {
        socket.destroy();
        resolve();
      });
      socket.once('error', (error: NodeJS.ErrnoException) => reject(new Error(wordsOf(error), { cause: error })));
    });
  return (signal) => attempt(FIRST_MS, signal).catch(() => attempt(FIRST_MS, signal));
}

const FIRST_MS = 400;

/** Resolves `name` over UDP at `server`; one of the addresses must be `expected`. */
export function probeDns(server: string, port: number, name: string, expected: string): Probe {
  return (signal) =>
    new Promise((resolve, reject) => {
      const socket = createSocket({ type: isIPv6(server) ? 'udp6' : 'udp4', signal });
      const id = Math.floor(Math.random() * 65_536);
      const type = isIPv6(expected) ? 'AAAA' : 'A';
      const end = (error?: Error): void => {
        socket.removeAllListeners();
        socket.on('error', () => {});
        if (!signal.aborted) socket.close();
        if (error === undefined) resolve();
        else reject(error);
      };
      signal.addEventListener('abort', () => end(new Error('no answer')), { once: true });
      socket.once('error', (error: NodeJS.ErrnoException) => end(new Error(wordsOf(error), { cause: error })));
      socket.on('message', (message) => {
        try {
          const packet = decode(message);
          if (packet.id !== id) return;
          const data = (packet.answers ?? []).flatMap((each) => ('data' in each ? [String(each.data)] : []));
          end(data.includes(expected) ? undefined : new Error(`${name} does not resolve to ${expected}`));
        } catch (error) {
          end(new Error('the answer cannot be read', { cause: error }));
        }
      });
      socket.connect(port, server, (error?: Error) => {
        // Without a route the listener gets the error; sending on a socket that is not connected would throw.
        if (error !== undefined && error !== null) end(error);
        else socket.send(encode({ type: 'query', id, flags: 0x0100, questions: [{ type, name, class: 'IN' }] }));
      });
    });
}

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EHOSTUNREACH: 'no route to host',
  ENETUNREACH: 'network is unreachable',
  ETIMEDOUT: 'no answer',
};

/** A stable text for the same fault, without local addresses and ports, which differ each time. */
const wordsOf = (error: NodeJS.ErrnoException): string => WORDS[error.code ?? ''] ?? error.code ?? error.message;

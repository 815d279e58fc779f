import { createSocket } from 'node:dgram';
import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { connect, isIPv6 } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ConnectionOptions, checkServerIdentity, connect as connectTls } from 'node:tls';
import { decode, encode } from 'dns-packet';
import { messageOf } from '../../../../base/errors.ts';
import type { Probe } from '../port.ts';

const NO_ANSWER = 'no answer';

export interface HttpProbeOptions {
  readonly url: string;
  /**
   * Returns the CA certificates (PEM) that verify the server. Verification is disabled if it is not set or returns
   * undefined.
   */
  readonly ca?: () => Promise<string | undefined>;
  readonly identity?: string;
  /** Decides by the HTTP status whether the component works. By default, a status below 400 means that it works. */
  readonly accept?: (status: number) => boolean;
}

/**
 * Agent that verifies the name in the server's certificate itself. Node.js does not reuse connections of requests that
 * have their own `checkServerIdentity`, but it reuses connections of this agent.
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

/** Probe that sends a GET request. The connection is kept open and reused by the next request. */
export function httpProbe({ url, ca, identity = '127.0.0.1', accept = below400 }: HttpProbeOptions): Probe {
  const target = new URL(url);
  const secure = target.protocol === 'https:';
  const settings = { keepAlive: true, maxSockets: 1 };
  const agent = secure ? new IdentityAgent(identity, settings) : new HttpAgent(settings);
  let known: string | undefined;
  return async (signal) => {
    // Authorities may have changed since a failure, so they are read again for the first request after a failure.
    const authorities = known ?? (await ca?.());
    known = undefined;
    const trust = authorities === undefined ? { rejectUnauthorized: false } : { ca: authorities };
    await new Promise<void>((resolve, reject) => {
      const send = secure ? httpsRequest : httpRequest;
      const request = send(target, { agent, ...(secure ? trust : {}) });
      // If the signal were an option of the request, a later abort would also end the kept connection.
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

/** Time limit of one connection attempt. */
const ATTEMPT_MS = 400;
/** Maximum number of attempts that end without an answer. */
const SILENT_ATTEMPTS = 2;
/**
 * Maximum number of attempts. While the API servers of two of three masters restart again and again, the service
 * `kubernetes` keeps their addresses, and all attempts of a probe reach one of them with a probability of 0.2 percent.
 */
const ATTEMPTS = 16;
const PAUSE_MS = 20;

/**
 * Probe that succeeds if a connection is accepted. A refused attempt is repeated, because another backend of a service
 * may accept the next one.
 */
export function probeTcp(host: string, port: number): Probe {
  const attempt = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const socket = connect({ host, port, signal });
      socket.setTimeout(ATTEMPT_MS, () => socket.destroy(new Error(NO_ANSWER)));
      socket.once('connect', () => {
        socket.destroy();
        resolve();
      });
      socket.once('error', (error: NodeJS.ErrnoException) => reject(new Error(wordsOf(error), { cause: error })));
    });
  return async (signal) => {
    let silent = 0;
    for (let attempts = 1; ; attempts += 1) {
      try {
        return await attempt(signal);
      } catch (error) {
        if (messageOf(error) === NO_ANSWER) silent += 1;
        if (signal.aborted || attempts === ATTEMPTS || silent === SILENT_ATTEMPTS) throw error;
      }
      await sleep(PAUSE_MS);
    }
  };
}

/** Probe that resolves `name` over UDP at `server`. One of the addresses in the answer must be `expected`. */
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
        // Without a route, connect fails and calls back with the error. Sending on the unconnected socket would throw.
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
  ETIMEDOUT: NO_ANSWER,
};

/** Describes a fault without local addresses and ports, so that the text stays the same while the fault lasts. */
const wordsOf = (error: NodeJS.ErrnoException): string => WORDS[error.code ?? ''] ?? error.code ?? error.message;

/** What a listener needs to speak TLS, and where it comes from when files may be replaced under it. */
import type { X509Certificate } from 'node:crypto';
import { createServer as createTlsServer, type SecureContextOptions, type Server, type TLSSocket } from 'node:tls';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';

export interface TlsMaterials {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  /** Issuers of client certificates. With it, a client without a valid certificate is refused. */
  readonly ca?: string | Buffer | readonly string[];
  /** Why this client, whose certificate is valid, is not to be served; undefined: it is welcome. */
  readonly refusal?: (certificate: X509Certificate) => string | undefined;
  /** OpenSSL's list. */
  readonly ciphers?: string;
  /** TLS 1.2 by default. */
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3';
  readonly maxVersion?: 'TLSv1.2' | 'TLSv1.3';
}

/** Asked before every handshake: another object than the last one means that something has changed. */
export interface TlsSource {
  current(): Promise<TlsMaterials>;
}

const contextOf = ({ cert, key, ca, ciphers, minVersion, maxVersion }: TlsMaterials): SecureContextOptions => ({
  cert,
  key,
  minVersion: minVersion ?? 'TLSv1.2',
  ...(maxVersion === undefined ? {} : { maxVersion }),
  ...(ciphers === undefined ? {} : { ciphers }),
  ...(ca === undefined ? {} : { ca: Array.isArray(ca) ? [...ca] : (ca as string | Buffer) }),
});

export interface TlsFront {
  /** Takes a connection over; `accepted` gets it after the handshake. */
  readonly server: Server;
  /** To be awaited before a connection is handed to `server`; undefined when there is nothing to wait for. */
  refresh(): Promise<void> | undefined;
}

const MAX_REFUSALS = 256;

/** Rejected clients retry forever: the first, tenth, hundredth … rejection is logged. */
class Refusals {
  readonly #log: Log;
  readonly #times = new Map<string, number>();

  constructor(log: Log) {
    this.#log = log;
  }

  say(client: string | undefined, cause: string): void {
    const key = `${client} ${cause}`;
    const times = (this.#times.get(key) ?? 0) + 1;
    if (times === 1 && this.#times.size >= MAX_REFUSALS) this.#times.clear();
    this.#times.set(key, times);
    this.#log.v(Number.isInteger(Math.log10(times)) ? 2 : 4, 'connection refused', { client, cause, times });
  }
}

/** Makes handshakes with what `source` has at the time. Throws when what it has at first is no certificate and key. */
export async function createTlsFront(
  source: TlsMaterials | TlsSource,
  handshakeTimeoutMs: number,
  log: Log,
  accepted: (socket: TLSSocket) => void,
): Promise<TlsFront> {
  let materials = 'current' in source ? await source.current() : source;
  const refused = new Refusals(log);
  const server = createTlsServer(
    {
      ...contextOf(materials),
      ALPNProtocols: ['h2', 'http/1.1'],
      handshakeTimeout: handshakeTimeoutMs,
      ...(materials.ca === undefined ? {} : { requestCert: true, rejectUnauthorized: true }),
    },
    (socket) => {
      const certificate = materials.refusal === undefined ? undefined : socket.getPeerX509Certificate();
      const refusal = certificate === undefined ? undefined : materials.refusal?.(certificate);
      if (refusal === undefined) accepted(socket);
      else {
        refused.say(socket.remoteAddress, refusal);
        socket.destroy();
      }
    },
  );
  server.on('tlsClientError', (error: Error, socket: TLSSocket) => {
    refused.say(socket.remoteAddress, error.message);
    socket.destroy();
  });
  const refresh = async (from: TlsSource): Promise<void> => {
    const next = await from.current();
    if (next === materials) return;
    try {
      server.setSecureContext(contextOf(next));
      materials = next;
    } catch (error) {
      log.error('new certificate is of no use, the old one stays', { cause: messageOf(error) });
    }
  };
  return { server, refresh: () => ('current' in source ? refresh(source) : undefined) };
}

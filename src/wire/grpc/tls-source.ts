/** TLS settings of a listener, and their reloading when files are replaced. */

import type { X509Certificate } from 'node:crypto';
import { createServer as createTlsServer, type SecureContextOptions, type Server, type TLSSocket } from 'node:tls';
import { BoundedMap } from '../../base/bounded-map.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';

export interface TlsMaterials {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  /** Issuers of client certificates. If set, a client without a valid certificate is rejected. */
  readonly ca?: string | Buffer | readonly string[];
  /** Returns the reason to reject a client with a valid certificate; undefined accepts it. */
  readonly refusal?: (certificate: X509Certificate) => string | undefined;
  /** Cipher list in OpenSSL's format. */
  readonly ciphers?: string;
  /** TLS 1.2 by default. */
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3';
  readonly maxVersion?: 'TLSv1.2' | 'TLSv1.3';
}

/** Queried before every handshake. A new object means that the materials have changed. */
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
  /** Performs handshakes; `accepted` gets the connection afterwards. */
  readonly server: Server;
  /** Must be awaited before a connection is passed to `server`; undefined if there is nothing to wait for. */
  refresh(): Promise<void> | undefined;
}

const MAX_REFUSALS = 256;

/** Logs the first, tenth, hundredth … rejection of a client, because rejected clients retry forever. */
class Refusals {
  readonly #log: Log;
  readonly #times = new BoundedMap<string, number>(MAX_REFUSALS);

  constructor(log: Log) {
    this.#log = log;
  }

  logFailure(client: string | undefined, cause: string): void {
    const key = `${client} ${cause}`;
    const times = (this.#times.get(key) ?? 0) + 1;
    this.#times.set(key, times);
    this.#log.v(Number.isInteger(Math.log10(times)) ? 2 : 4, 'connection refused', { client, cause, times });
  }
}

/**
 * Performs handshakes with the current materials of `source`. Throws if the first materials have no valid certificate
 * and key.
 */
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
        refused.logFailure(socket.remoteAddress, refusal);
        socket.destroy();
      }
    },
  );
  server.on('tlsClientError', (error: Error, socket: TLSSocket) => {
    refused.logFailure(socket.remoteAddress, error.message);
    socket.destroy();
  });
  const refresh = async (from: TlsSource): Promise<void> => {
    const next = await from.current();
    if (next === materials) return;
    try {
      server.setSecureContext(contextOf(next));
      materials = next;
    } catch (error) {
      log.error('new certificate not usable; using the previous one', { cause: messageOf(error) });
    }
  };
  return { server, refresh: () => ('current' in source ? refresh(source) : undefined) };
}

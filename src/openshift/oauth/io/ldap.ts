/**
 * Verifies passwords with an LDAP server: searches for the user's entry, and then binds as this entry with the
 * password. The user name is passed as a value, never as part of the text of a filter. Source: RFC 4511, RFC 4516 (LDAP
 * URLs).
 */

import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AndFilter, Client, EqualityFilter, FilterParser, InvalidCredentialsError, PresenceFilter } from 'ldapts';
import { hostOfUrl } from '../../../base/addresses/url-endpoint.ts';
import { ignore } from '../../../base/errors.ts';
import type { LdapEntry, LdapPort, LdapQuery } from '../port.ts';
import { LdapFrames } from './ldap-frames.ts';

const TIMEOUT_MS = 10_000;
const TOTAL_MS = 30_000;
/** Limits of all responses during one login. Typical responses are far smaller. */
const MAX_BYTES = 4 << 20;
const MAX_MESSAGES = 200;
const SCOPES = ['base', 'one', 'sub'] as const;
/** Name for a bind if the user is unknown. Without this bind, the response time would reveal whether a user exists. */
const NO_ENTRY = 'cn=no-such-entry-of-this-directory';

interface LdapUrl {
  readonly server: string;
  readonly base: string;
  readonly attribute: string;
  readonly scope: (typeof SCOPES)[number];
  readonly filter: string;
}

/** Parses an LDAP URL. Throws an Error with the reason if the URL is invalid. */
export function parseLdapUrl(text: string): LdapUrl {
  const [, server, base = '', attribute = '', scope = '', filter = ''] =
    /^(ldaps?:\/\/[^/?]+)(?:\/([^?]*))?(?:\?([^?]*))?(?:\?([^?]*))?(?:\?([^?]*))?$/i.exec(text) ?? [];
  if (server === undefined) throw new Error('ldap.url: is not an LDAP URL; give ldap://HOST/BASE?ATTRIBUTE');
  const known = SCOPES.find((each) => each === (scope === '' ? 'sub' : scope));
  if (known === undefined)
    throw new Error(`ldap.url: scope ${JSON.stringify(scope)} is not one of ${SCOPES.join(', ')}`);
  return {
    server,
    base: decodeURIComponent(base),
    attribute: attribute === '' ? 'uid' : (decodeURIComponent(attribute).split(',')[0] ?? 'uid'),
    scope: known,
    filter: filter === '' ? '' : decodeURIComponent(filter),
  };
}

export interface LdapLimits {
  /** Time limit of a login. */
  readonly totalMs?: number;
}

/** Sockets of one login. Enforces limits that the library does not have. */
class LoginSockets {
  readonly #totalMs: number;
  readonly #sockets = new Set<Socket>();
  readonly #timer: NodeJS.Timeout;
  readonly #failure = Promise.withResolvers<never>();
  #received = 0;
  #messages = 0;

  constructor(totalMs: number) {
    this.#totalMs = totalMs;
    this.#timer = setTimeout(() => this.#fail(new Error(`ldap: no answer within ${this.#totalMs} ms`)), totalMs);
    this.#failure.promise.catch(ignore('a failure after the end of the login has no effect'));
  }

  /** Intercepts received data, so that the library gets only complete and validated messages. */
  guarded<S extends Socket>(socket: S): S {
    this.#sockets.add(socket);
    const frames = new LdapFrames();
    const emit = socket.emit.bind(socket);
    socket.emit = (event: string | symbol, ...values: unknown[]): boolean => {
      const [chunk] = values;
      if (event !== 'data' || !Buffer.isBuffer(chunk)) return emit(event, ...values);
      try {
        this.#received += chunk.length;
        if (this.#received > MAX_BYTES) throw new Error(`ldap: the server sent more than ${MAX_BYTES} bytes`);
        for (const message of frames.push(chunk)) {
          this.#messages += 1;
          if (this.#messages > MAX_MESSAGES)
            throw new Error(`ldap: the server sent more than ${MAX_MESSAGES} messages`);
          emit('data', message);
        }
      } catch (error) {
        this.#fail(error as Error);
      }
      return true;
    };
    return socket;
  }

  /** Waits for `work`, but rejects as soon as a limit is exceeded, even if the library still waits. */
  async within<T>(work: Promise<T>): Promise<T> {
    try {
      return await Promise.race([work, this.#failure.promise]);
    } finally {
      clearTimeout(this.#timer);
    }
  }

  #fail(error: Error): void {
    this.#failure.reject(error);
    for (const socket of this.#sockets) socket.destroy();
  }
}

export function createLdap({ totalMs = TOTAL_MS }: LdapLimits = {}): LdapPort {
  return {
    authenticate(query, user, password) {
      const sockets = new LoginSockets(totalMs);
      return sockets.within(authenticate(sockets, query, user, password));
    },
  };
}

async function authenticate(
  sockets: LoginSockets,
  { url, bindDn, bindPassword, insecure, ca, attributes }: LdapQuery,
  user: string,
  password: string,
): Promise<LdapEntry | undefined> {
  const { server, base, attribute, scope, filter } = parseLdapUrl(url);
  const secure = server.toLowerCase().startsWith('ldaps:');
  if (insecure && secure) throw new Error('ldap.insecure: is for ldap:// alone; change the URL');
  const tls = ca === undefined ? {} : { ca };
  const options = {
    url: server,
    timeout: TIMEOUT_MS,
    connectTimeout: TIMEOUT_MS,
    createConnection: ((...to: Parameters<typeof connect>) => sockets.guarded(connect(...to))) as typeof connect,
    createSecureConnection: ((...to: Parameters<typeof connectTls>) =>
      sockets.guarded(connectTls(...to))) as typeof connectTls,
  };
  const client = new Client(secure ? { ...options, tlsOptions: tls } : options);
  try {
    if (!secure && !insecure) await client.startTLS({ ...tls, ...identityOf(server) });
    if (bindDn !== '') await client.bind(bindDn, bindPassword);
    const { searchEntries } = await client.search(base, {
      scope,
      filter: new AndFilter({
        filters: [
          filter === '' ? new PresenceFilter({ attribute: 'objectClass' }) : FilterParser.parseString(filter),
          new EqualityFilter({ attribute, value: user }),
        ],
      }),
      attributes: [attribute, ...attributes],
      // The library's decoder drops a byte order mark, so the values are decoded here.
      explicitBufferAttributes: [attribute, ...attributes],
      sizeLimit: 2,
      timeLimit: TIMEOUT_MS / 1000,
    });
    // If two entries match, the user is ambiguous, so the login fails. An empty name would result in an anonymous bind.
    const [first] = searchEntries;
    const entry = searchEntries.length === 1 && first?.dn !== '' ? first : undefined;
    const dn = entry?.dn ?? NO_ENTRY;
    try {
      await client.bind(dn, password);
    } catch (error) {
      if (entry === undefined || error instanceof InvalidCredentialsError) return undefined;
      throw error;
    }
    if (entry === undefined) return undefined;
    const values = Object.entries(entry).map(
      ([name, value]) => [name.toLowerCase(), [value].flat().map(textOf)] as const,
    );
    return { dn, values: new Map(values) };
  } finally {
    await client.unbind().catch(ignore('the answer is complete, and the connection is closed in any case'));
  }
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Text of a value. A binary value, such as an objectGUID, becomes base64url, so that different values stay different.
 * Source: library-go, pkg/security/ldaputil, GetRawAttributeValue.
 */
function textOf(value: string | Buffer): string {
  if (typeof value === 'string') return value;
  try {
    return UTF8.decode(value);
  } catch {
    return value.toString('base64url');
  }
}

/**
 * Options with the name or address that the certificate must have after StartTLS. Node.js would otherwise verify an IP
 * address as `localhost`.
 */
function identityOf(server: string): { readonly host: string; readonly servername?: string } {
  const host = hostOfUrl(new URL(server));
  return isIP(host) === 0 ? { host, servername: host } : { host };
}

export const ldap: LdapPort = createLdap();

/**
 * Verifies passwords with an LDAP server: searches the user, then binds as the entry with the password. The user name
 * is a value of the search, never a part of a filter's text. Source: RFC 4511, RFC 4516 (LDAP URLs).
 */

import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AndFilter, Client, EqualityFilter, FilterParser, InvalidCredentialsError, PresenceFilter } from 'ldapts';
import { ignore } from '../../../base/errors.ts';
import type { LdapPort } from '../port.ts';
import { LdapFrames } from './ldap-frames.ts';

const TIMEOUT_MS = 10_000;
const SCOPES = ['base', 'one', 'sub'] as const;
/** Name for a bind in place of an unknown user, so that the response time does not reveal whether a user exists. */
const NO_ENTRY = 'cn=no-such-entry-of-this-directory';

interface LdapUrl {
  readonly server: string;
  readonly base: string;
  readonly attribute: string;
  readonly scope: (typeof SCOPES)[number];
  readonly filter: string;
}

/** Throws an Error with the reason. */
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

/** Passes only complete, validated messages to the library. */
function judged<S extends Socket>(socket: S): S {
  const frames = new LdapFrames();
  const emit = socket.emit.bind(socket);
  const receive = (chunk: Buffer): void => {
    try {
      for (const message of frames.push(chunk)) emit('data', message);
    } catch (error) {
      socket.destroy(error instanceof Error ? error : undefined);
    }
  };
  socket.emit = (event: string | symbol, ...values: unknown[]): boolean => {
    const [chunk] = values;
    if (event !== 'data' || !Buffer.isBuffer(chunk)) return emit(event, ...values);
    receive(chunk);
    return true;
  };
  return socket;
}

export const ldap: LdapPort = {
  async authenticate({ url, bindDn, bindPassword, insecure, ca, attributes }, user, password) {
    const { server, base, attribute, scope, filter } = parseLdapUrl(url);
    const secure = server.toLowerCase().startsWith('ldaps:');
    if (insecure && secure) throw new Error('ldap.insecure: is for ldap:// alone; change the URL');
    const tls = ca === undefined ? {} : { ca };
    const options = {
      ...{ url: server, timeout: TIMEOUT_MS, connectTimeout: TIMEOUT_MS },
      createConnection: ((...to: Parameters<typeof connect>) => judged(connect(...to))) as typeof connect,
      createSecureConnection: ((...to: Parameters<typeof connectTls>) =>
        judged(connectTls(...to))) as typeof connectTls,
    };
    const client = new Client(secure ? { ...options, tlsOptions: tls } : options);
    try {
      if (!secure && !insecure) await client.startTLS(tls);
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
        sizeLimit: 2,
        timeLimit: TIMEOUT_MS / 1000,
      });
      // If two entries match, the user is ambiguous and rejected.
      const entry = searchEntries.length === 1 ? searchEntries[0] : undefined;
      const dn = entry?.dn ?? NO_ENTRY;
      try {
        await client.bind(dn, password);
      } catch (error) {
        if (entry === undefined || error instanceof InvalidCredentialsError) return undefined;
        throw error;
      }
      if (entry === undefined) return undefined;
      const values = Object.entries(entry).map(
        ([name, value]) => [name.toLowerCase(), [value].flat().map(String)] as const,
      );
      return { dn, values: new Map(values) };
    } finally {
      await client.unbind().catch(ignore('the answer is complete, and the connection is closed in any case'));
    }
  },
};

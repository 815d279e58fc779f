/** Identities asserted by a front proxy. They are trusted only with a client certificate of the request-header CA. */
import type { UserInfo } from '../../api/registry/definition.ts';
import type { ApiServerConfig } from '../config/server-config.ts';
import type { ConnectionInfo, HttpRequest } from '../port.ts';
import { commonNameOf, issuedBy, parseAuthorities } from './certificates.ts';

export function createFrontProxyAuthenticator(settings: NonNullable<ApiServerConfig['requestHeader']>) {
  const {
    userHeaders = ['x-remote-user'],
    groupHeaders = ['x-remote-group'],
    extraPrefixes = ['x-remote-extra-'],
    uidHeaders = [],
  } = settings;
  const authorities = parseAuthorities(settings.ca);
  const trusted = new WeakMap<ConnectionInfo, boolean>();
  const isProxy = (connection: ConnectionInfo): boolean => {
    if (connection.peerChain === undefined) return false;
    let answer = trusted.get(connection);
    if (answer === undefined) {
      const leaf = issuedBy(connection.peerChain, authorities);
      answer =
        leaf !== undefined &&
        (settings.allowedNames.length === 0 || settings.allowedNames.includes(commonNameOf(leaf)));
      trusted.set(connection, answer);
    }
    return answer;
  };
  return {
    authenticate(request: HttpRequest, connection: ConnectionInfo): UserInfo | undefined {
      const name = firstOf(request, userHeaders);
      if (name === undefined || !isProxy(connection)) return undefined;
      const groups = groupHeaders.flatMap((header) => valuesOf(request, header));
      const uid = firstOf(request, uidHeaders);
      return {
        name,
        ...(uid === undefined ? {} : { uid }),
        groups: [...groups, 'system:authenticated'],
        extra: Object.assign({}, ...extraPrefixes.map((prefix) => extraOf(request, prefix))),
      };
    },
  };
}

function firstOf(request: HttpRequest, headers: readonly string[]): string | undefined {
  for (const header of headers) {
    const value = request.headers[header];
    if (typeof value === 'string' && value !== '') return value;
  }
  return undefined;
}

/** All values of a header. Repeated headers are kept apart, because a group name may contain a comma. */
export function valuesOf(request: HttpRequest, header: string): string[] {
  const values: string[] = [];
  const raw = request.rawHeaders;
  for (let index = 0; index + 1 < raw.length; index += 2) {
    if (raw[index]?.toLowerCase() === header) values.push(raw[index + 1] ?? '');
  }
  return values;
}

/** Values of the headers `<prefix><key>`, by key. Keys are percent-decoded, as in upstream. */
export function extraOf(request: HttpRequest, prefix: string): Record<string, string[]> {
  const extra = new Map<string, string[]>();
  const raw = request.rawHeaders;
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const header = raw[index]?.toLowerCase() ?? '';
    if (!header.startsWith(prefix)) continue;
    const key = decoded(header.slice(prefix.length));
    extra.set(key, [...(extra.get(key) ?? []), raw[index + 1] ?? '']);
  }
  return Object.fromEntries(extra);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

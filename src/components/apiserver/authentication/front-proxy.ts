/** Identities asserted by a front proxy: believed only with a certificate of the request-header CA. */
import type { UserInfo } from '../../../api/registry/definition.ts';
import type { ApiServerConfig } from '../config.ts';
import type { ConnectionInfo, HttpRequest } from '../port.ts';
import { commonNameOf, issuedBy, parseAuthorities } from './certificates.ts';

const EXTRA_PREFIX = 'x-remote-extra-';

export function createFrontProxyAuthenticator(settings: NonNullable<ApiServerConfig['requestHeader']>) {
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
      const name = request.headers['x-remote-user'];
      if (typeof name !== 'string' || name === '' || !isProxy(connection)) return undefined;
      const groups = valuesOf(request, 'x-remote-group');
      const uid = request.headers['x-remote-uid'];
      return {
        name,
        ...(typeof uid === 'string' ? { uid } : {}),
        groups: [...groups, 'system:authenticated'],
        extra: extraOf(request, EXTRA_PREFIX),
      };
    },
  };
}

/** All values of a header, repeated ones kept apart (a group may hold a comma). */
export function valuesOf(request: HttpRequest, header: string): string[] {
  const values: string[] = [];
  const raw = request.rawHeaders;
  for (let index = 0; index + 1 < raw.length; index += 2) {
    if (raw[index]?.toLowerCase() === header) values.push(raw[index + 1] ?? '');
  }
  return values;
}

/** Headers `<prefix><key>` as a map; keys are percent-decoded as upstream does. */
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

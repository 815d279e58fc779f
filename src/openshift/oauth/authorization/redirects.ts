/** Validates the targets of redirects after a login: redirect URIs of clients, and paths of this server. */
import type { OAuthClient } from '../kinds/oauth/types.ts';

const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', '[::1]', 'localhost']);
/** Placeholder origin with which a relative path is resolved (RFC 2606). */
const SELF = 'https://self.invalid';

/** Returns `path` if it is a relative path of this server; otherwise `/`. */
export function safePath(path: string | null | undefined): string {
  if (typeof path !== 'string' || !path.startsWith('/') || /^\/[/\\]/.test(path) || /[\\\p{Cc}]/u.test(path))
    return '/';
  if (!URL.canParse(path, SELF)) return '/';
  const url = new URL(path, SELF);
  return url.origin === SELF && !url.pathname.startsWith('//') ? `${url.pathname}${url.search}` : '/';
}

/**
 * Redirect URI of a request if the client has registered it; otherwise undefined. For a loopback address, the port may
 * differ (RFC 8252, section 7.3). `own`: URIs of this server that are accepted in addition.
 */
export function acceptedRedirect(
  client: OAuthClient,
  requested: string | null,
  own: readonly string[] = [],
): string | undefined {
  const registered = client.redirectURIs ?? [];
  if (requested === null || requested === '') return registered.length === 1 ? registered[0] : undefined;
  if (registered.includes(requested) || own.includes(requested)) return requested;
  if (!URL.canParse(requested) || requested.includes('#') || /[\\\s\p{Cc}]/u.test(requested)) return undefined;
  const url = new URL(requested);
  if (url.protocol !== 'http:' || !LOOPBACK.has(url.hostname) || url.username !== '' || url.password !== '')
    return undefined;
  const matches = registered.some((each) => {
    const known = URL.parse(each);
    return (
      known !== null &&
      known.protocol === 'http:' &&
      known.hostname === url.hostname &&
      known.pathname === url.pathname &&
      known.search === url.search
    );
  });
  return matches ? requested : undefined;
}

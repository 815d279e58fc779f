/** Valid targets after a login: redirects of clients, and paths of this server. */
import type { OAuthClient } from '../kinds/oauth/types.ts';

const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', '[::1]', 'localhost']);
/** Placeholder origin for resolving a relative path (RFC 2606). */
const SELF = 'https://self.invalid';

/** Returns a relative path of this server, or `/` for anything else. */
export function safePath(path: string | null | undefined): string {
  if (typeof path !== 'string' || !path.startsWith('/') || /^\/[/\\]/.test(path) || /[\\\p{Cc}]/u.test(path))
    return '/';
  if (!URL.canParse(path, SELF)) return '/';
  const url = new URL(path, SELF);
  return url.origin === SELF && !url.pathname.startsWith('//') ? `${url.pathname}${url.search}` : '/';
}

/**
 * Redirect of a request if the client registered the same URI. A loopback address may have any port (RFC 8252, section
 * 7.3). `own`: further paths of this server that the client may use.
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

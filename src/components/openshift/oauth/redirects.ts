/** Where a login may lead: redirects of clients, and paths of this server. */
import type { OAuthClient } from '../../../api/kinds/oauth/types.ts';

const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', '[::1]', 'localhost']);
/** Stands for this server while a relative path is resolved (RFC 2606). */
const SELF = 'https://self.invalid';

/** A relative path of this server; anything else leads to `/`. */
export function safePath(path: string | null | undefined): string {
  if (typeof path !== 'string' || !path.startsWith('/') || /^\/[/\\]/.test(path) || /[\\\p{Cc}]/u.test(path))
    return '/';
  if (!URL.canParse(path, SELF)) return '/';
  const url = new URL(path, SELF);
  return url.origin === SELF && !url.pathname.startsWith('//') ? `${url.pathname}${url.search}` : '/';
}

/**
 * The redirect of a request, when it is one that the client registered: the same text, where a loopback address may
 * have any port (RFC 8252, section 7.3). `own`: paths of this server that the client may be redirected to besides.
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

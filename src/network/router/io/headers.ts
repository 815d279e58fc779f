/**
 * Filters and adds the headers of proxied requests and responses. Source: RFC 9110 §7.6.1 (hop-by-hop), RFC 7239, RFC
 * 9113 §8.2.2.
 */
import type { IncomingHttpHeaders } from 'node:http';

const HOP_BY_HOP = new Set([
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  // CGI programs would use a `Proxy` header as their proxy setting (https://httpoxy.org). OpenShift's router removes it
  // too.
  'proxy',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
/** Headers that may occur only once in HTTP/2. */
const SINGLE = new Set(
  (
    'access-control-allow-credentials access-control-max-age access-control-request-method age authorization ' +
    'content-encoding content-language content-length content-location content-md5 content-range content-type date dnt ' +
    'etag expires from host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified location ' +
    'max-forwards range referer retry-after tk upgrade-insecure-requests user-agent x-content-type-options'
  ).split(' '),
);
/** Headers that the proxy sets itself. */
const OWN = new Set([
  ...['host', 'content-length', 'expect', 'cdn-loop'],
  ...['forwarded', 'x-forwarded-for', 'x-forwarded-host'],
]);
/** Identifier of the router in the header CDN-Loop. Source: RFC 8586. */
const LOOP_ID = 'hyperedge-router';
const OWN_PORTS = new Set(['x-forwarded-port', 'x-forwarded-proto']);

export interface Forwarding {
  readonly source: string;
  readonly host: string;
  readonly secure: boolean;
  readonly port: number;
  /** Name of the sticky cookie, which is not forwarded to the server. */
  readonly cookie: string | undefined;
}

/** Alternating names and values, as in `rawHeaders`. */
export type RawHeaders = string[];

/** Headers of the request to the server, without those that frame its body. */
export function forwarded(raw: readonly string[], headers: IncomingHttpHeaders, by: Forwarding): RawHeaders {
  const dropped = namedBy(headers.connection);
  const result: RawHeaders = ['Host', by.host];
  const cookies: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] ?? '';
    const value = raw[at + 1] ?? '';
    const key = name.toLowerCase();
    // Many servers treat an underscore in a header name as a hyphen, so such names are compared in their form with
    // hyphens.
    const meant = key.replaceAll('_', '-');
    if (key.startsWith(':') || HOP_BY_HOP.has(meant) || OWN.has(meant) || OWN_PORTS.has(meant) || dropped?.has(key))
      continue;
    if (key !== 'cookie') result.push(name, value);
    else {
      const left = by.cookie === undefined ? value : withoutCookie(value, by.cookie);
      if (left !== '') cookies.push(left);
    }
  }
  // HTTP/2 may split the cookie header; HTTP/1.1 allows only one (RFC 9113 §8.2.3).
  if (cookies.length > 0) result.push('Cookie', cookies.join('; '));
  const before = headers['x-forwarded-for'];
  const chain =
    before === undefined ? by.source : `${Array.isArray(before) ? before.join(', ') : before}, ${by.source}`;
  const proto = by.secure ? 'https' : 'http';
  const node = by.source.includes(':') ? `"[${by.source}]"` : by.source;
  const element = `for=${node};host=${quoted(by.host)};proto=${proto}`;
  result.push('X-Forwarded-For', chain, 'X-Forwarded-Host', by.host, 'X-Forwarded-Port', String(by.port));
  result.push('X-Forwarded-Proto', proto);
  const hops = loopHops(headers);
  result.push('CDN-Loop', hops.length === 0 ? LOOP_ID : `${hops.join(', ')}, ${LOOP_ID}`);
  result.push('Forwarded', headers.forwarded === undefined ? element : `${headers.forwarded}, ${element}`);
  return result;
}

const loopHops = (headers: IncomingHttpHeaders): string[] =>
  String(headers['cdn-loop'] ?? '')
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '');

/** Number of routers of this product that have forwarded the request. */
export const ownHops = (headers: IncomingHttpHeaders): number =>
  loopHops(headers).filter((each) => each === LOOP_ID).length;

const quoted = (host: string): string => (/^[A-Za-z0-9._-]+$/.test(host) ? host : JSON.stringify(host));

/** Headers of the response to the client. */
export function returned(raw: readonly string[], connection: string | undefined): RawHeaders {
  const dropped = namedBy(connection);
  const result: RawHeaders = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] ?? '';
    const key = name.toLowerCase();
    if (key.startsWith(':') || HOP_BY_HOP.has(key) || dropped?.has(key)) continue;
    result.push(name, raw[at + 1] ?? '');
  }
  return result;
}

/** Converts headers for HTTP/2: lower-case names, and several values of one name in an array. */
export function asObject(raw: readonly string[]): Record<string, string | string[]> {
  const result: Record<string, string | string[]> = Object.create(null) as Record<string, string | string[]>;
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const key = (raw[at] ?? '').toLowerCase();
    const value = raw[at + 1] ?? '';
    const known = result[key];
    if (known === undefined) result[key] = value;
    // As in Node's own header objects, the first value is used.
    else if (SINGLE.has(key)) continue;
    else if (Array.isArray(known)) known.push(value);
    else result[key] = key === 'cookie' ? `${known}; ${value}` : [known, value];
  }
  return result;
}

/** Header names that the Connection header makes hop-by-hop. */
function namedBy(connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined;
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()));
}

export function cookieOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  for (const part of headers.cookie?.split(';') ?? []) {
    const [key = '', value = ''] = part.trim().split('=', 2);
    if (key === name) return value;
  }
  return undefined;
}

function withoutCookie(text: string, name: string): string {
  return text
    .split(';')
    .filter((part) => part.trim().split('=', 1)[0] !== name)
    .join(';')
    .trim();
}

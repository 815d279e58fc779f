/** Parses values as Go's `flag` and `strconv` packages do, and addresses as etcd does. */

/** Base 10, or 16, 8 and 2 by prefix; underscores between digits. Source: strconv.ParseInt, base 0. */
export function parseInteger(text: string): bigint | undefined {
  const match = /^([+-]?)(0[xX](?:_?[0-9a-fA-F])+|0[bB](?:_?[01])+|0[oO]?(?:_?[0-7])+|0|[1-9](?:_?[0-9])*)$/.exec(text);
  if (match === null) return undefined;
  const [, sign, digits = ''] = match;
  const plain = digits.replaceAll('_', '').toLowerCase();
  const value = BigInt(/^0[0-7]+$/.test(plain) ? `0o${plain.slice(1)}` : plain);
  return sign === '-' ? -value : value;
}

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'true', 'TRUE', 'True'].map((text) => [text, true] as const),
  ...['0', 'f', 'F', 'false', 'FALSE', 'False'].map((text) => [text, false] as const),
]);

/** Source: strconv.ParseBool. */
export function parseBoolean(text: string): boolean | undefined {
  return BOOLEANS.get(text);
}

/** An address as given by the user. */
export interface EtcdUrl {
  readonly scheme: 'http' | 'https' | 'unix' | 'unixs';
  /** Host without brackets; empty for sockets. */
  readonly host: string;
  /** 0 means any free port. */
  readonly port: number;
  /** The socket's path; undefined for http and https. */
  readonly path?: string;
  readonly text: string;
}

const SCHEMES = ['http', 'https', 'unix', 'unixs'] as const;

/**
 * Parses comma-separated URLs. If a URL is invalid, returns the problem of the first invalid URL. Source: etcd's
 * types.NewURLs.
 */
export function parseUrls(text: string): readonly EtcdUrl[] | { readonly problem: string } {
  const urls: EtcdUrl[] = [];
  for (const each of text.split(',')) {
    const url = parseUrl(each.trim());
    if ('problem' in url) return url;
    if (!urls.some((known) => known.text === url.text)) urls.push(url);
  }
  return urls;
}

function parseUrl(text: string): EtcdUrl | { readonly problem: string } {
  const [, given = '', authority = '', path = ''] =
    /^([a-zA-Z][a-zA-Z0-9+.-]*):\/\/([^/?#\s]*)([^\s]*)$/.exec(text) ?? [];
  const scheme = SCHEMES.find((each) => each === given.toLowerCase());
  if (scheme === undefined)
    return { problem: `"${text}" needs the scheme http, https, unix or unixs; write http://127.0.0.1:2379` };
  if (scheme === 'unix' || scheme === 'unixs') {
    const socket = `${authority}${path}`;
    return socket === ''
      ? { problem: `"${text}" names no socket; write unix:///run/etcd.sock` }
      : { scheme, host: '', port: 0, path: socket, text };
  }
  const [, bracketed, plain, digits] = /^(?:\[([^[\]]*)\]|([^:[\]]*)):(\d*)$/.exec(authority) ?? [];
  if (digits === undefined) return { problem: `"${text}" has no port; write it as ${scheme}://HOST:PORT` };
  if (path !== '') return { problem: `"${text}" must end after the port` };
  const port = Number(digits);
  if (port > 65_535) return { problem: `"${text}": ports go up to 65535` };
  return { scheme, host: bracketed ?? plain ?? '', port, text };
}

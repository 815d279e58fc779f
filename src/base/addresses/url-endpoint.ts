/** Host and port of a URL in the form that sockets take. */

const DEFAULT_PORTS: Readonly<Record<string, number>> = {
  'http:': 80,
  'https:': 443,
  'socks5:': 1080,
  'socks5h:': 1080,
};

type UrlParts = Pick<URL, 'protocol' | 'hostname' | 'port'>;

/** Host without the brackets of an IPv6 address. */
export const hostOfUrl = ({ hostname }: Pick<UrlParts, 'hostname'>): string => hostname.replace(/^\[|\]$/g, '');

/** Port, or the default port of the scheme; 443 for an unknown scheme. */
export const portOfUrl = ({ protocol, port }: Pick<UrlParts, 'protocol' | 'port'>): number =>
  port === '' ? (DEFAULT_PORTS[protocol] ?? 443) : Number(port);

/** Addresses of API servers as text: `10.0.0.5:8443`, `[fd00::5]:8443`, `master-1.lab:8443`. */
import { addressKind } from '../../../base/addresses/destinations.ts';

export interface Target {
  /** Host name or address; an IPv6 address has no brackets. */
  readonly host: string;
  readonly port: number;
}

const TARGET = /^(?:\[([0-9a-fA-F:.]+)\]|([a-zA-Z0-9](?:[a-zA-Z0-9.-]{0,251}[a-zA-Z0-9])?)):(\d{1,5})$/;

/** Parses a host with a port; undefined for other text. */
export function parseTarget(text: string): Target | undefined {
  const [, literal, name, digits] = TARGET.exec(text) ?? [];
  const host = literal ?? name;
  const port = Number(digits);
  if (host === undefined || port < 1 || port > 65_535) return undefined;
  return { host, port };
}

export function targetText({ host, port }: Target): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Target of a URL such as `https://10.0.0.5:8443`; undefined for other text. */
export function targetOfUrl(url: string): string | undefined {
  const [, authority] = /^https:\/\/([^/?#]+)\/?$/.exec(url) ?? [];
  if (authority === undefined) return undefined;
  const target = parseTarget(authority) ?? parseTarget(`${authority}:443`);
  return target === undefined ? undefined : targetText(target);
}

/** Whether the target can be another host. False for loopback, link-local and similar addresses. */
export function isRemote(text: string): boolean {
  const target = parseTarget(text);
  return target !== undefined && addressKind(target.host) === 'unicast';
}

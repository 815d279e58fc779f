/**
 * Selects the proxy for a request to another network. The rules are those of curl and of OpenShift's Proxy object:
 * `noProxy` lists host names, domains, addresses and networks that are reached directly.
 */

import { BlockList, isIP } from 'node:net';
import { hostOfUrl, portOfUrl } from '../../base/addresses/url-endpoint.ts';

export interface OutboundSettings {
  /** URL of the proxy for `http:` requests. Undefined for none. */
  readonly httpProxy?: string;
  /** URL of the proxy for `https:` requests. Undefined for none. */
  readonly httpsProxy?: string;
  /** Names, domains (`.lab` or `*.lab`), addresses and networks, which are reached directly; `*` for all. */
  readonly noProxy: readonly string[];
  /** PEM of authorities that are trusted in addition to those of the system. */
  readonly authorities?: string;
}

/** Settings without a proxy. */
export const DIRECT: OutboundSettings = { noProxy: [] };

/**
 * Reads the usual variables. The lower-case names take precedence, as with curl. Unlike curl, the upper-case name
 * `HTTP_PROXY` is also read.
 */
export function settingsFromEnvironment(env: Readonly<Record<string, string | undefined>>): OutboundSettings {
  const variable = (name: string): string | undefined => {
    const value = env[name.toLowerCase()] ?? env[name];
    return value === undefined || value.trim() === '' ? undefined : value.trim();
  };
  const httpProxy = variable('HTTP_PROXY');
  const httpsProxy = variable('HTTPS_PROXY');
  return {
    ...(httpProxy === undefined ? {} : { httpProxy }),
    ...(httpsProxy === undefined ? {} : { httpsProxy }),
    noProxy: entriesOf(variable('NO_PROXY') ?? ''),
  };
}

/** Entries of a list that is separated by commas or spaces. */
export const entriesOf = (list: string): string[] => list.split(/[\s,]+/).filter((entry) => entry !== '');

/** URL of the proxy for `target`. Undefined when the target is reached directly. */
export function proxyFor(target: URL, settings: OutboundSettings): string | undefined {
  const proxy = target.protocol === 'https:' ? settings.httpsProxy : settings.httpProxy;
  return proxy === undefined || isDirect(target, settings.noProxy) ? undefined : proxy;
}

function isDirect(target: URL, entries: readonly string[]): boolean {
  const host = hostOfUrl(target).replace(/\.$/, '').toLowerCase();
  const port = String(portOfUrl(target));
  return entries.some((entry) => matches(entry.toLowerCase(), host, port));
}

function matches(entry: string, host: string, port: string): boolean {
  if (entry === '*') return true;
  if (entry.includes('/')) return isInNetwork(host, entry);
  if (isIP(entry) !== 0) return sameAddress(host, entry);
  const [, literal, name, onlyPort] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(entry) ?? [];
  if (onlyPort !== undefined && onlyPort !== port) return false;
  if (literal !== undefined) return sameAddress(host, literal);
  if (name === undefined) return false;
  if (isIP(name) !== 0) return sameAddress(host, name);
  const domain = name.replace(/^\*?\./, '');
  return host === domain || host.endsWith(`.${domain}`);
}

function isInNetwork(host: string, entry: string): boolean {
  const [base = '', bits = ''] = entry.split('/');
  const family = isIP(base);
  if (family === 0 || isIP(host) !== family || !/^\d{1,3}$/.test(bits) || Number(bits) > (family === 4 ? 32 : 128))
    return false;
  const type = family === 4 ? 'ipv4' : 'ipv6';
  const network = new BlockList();
  network.addSubnet(base, Number(bits), type);
  return network.check(host, type);
}

function sameAddress(host: string, address: string): boolean {
  const family = isIP(address);
  return family !== 0 && isInNetwork(host, `${address}/${family === 4 ? 32 : 128}`);
}

/**
 * Configuration in the ConfigMap `kube-system/kube-dns`: `stubDomains` and `upstreamNameservers`. Source:
 * kubernetes.io, Customizing DNS Service (kube-dns).
 */
import type { ConfigMap } from '../../api/generated/core/v1.ts';
import { ipFamilyOf } from '../../base/addresses/addresses.ts';
import { messageOf } from '../../base/errors.ts';
import { fitsOnTheWire } from './core/index.ts';
import type { UpstreamServer } from './port.ts';

export const CONFIG_NAMESPACE = 'kube-system';
/** Name of the ConfigMap with the settings of cluster DNS, and of the DNS Service. */
export const CONFIG_NAME = 'kube-dns';

export interface ClusterDnsConfig {
  /** Upstream servers; if undefined, the servers of the host's resolver configuration. */
  readonly upstreams: readonly UpstreamServer[] | undefined;
  readonly stubDomains: ReadonlyMap<string, readonly UpstreamServer[]>;
  /** One line for each ignored value. */
  readonly problems: readonly string[];
}

const PORT = 53;

/** Parses `10.0.0.1`, `10.0.0.1:5353`, `fd00::1` or `[fd00::1]:5353`. Returns undefined for anything else. */
export function parseServer(text: string): UpstreamServer | undefined {
  const bracketed = /^\[([^\]]+)\](?::(\d{1,5}))?$/.exec(text);
  const plain = ipFamilyOf(text) === 0 ? /^([^:]+):(\d{1,5})$/.exec(text) : [text, text, undefined];
  const [, address = '', digits] = bracketed ?? plain ?? [];
  const port = digits === undefined ? PORT : Number(digits);
  const family = bracketed === null ? [4, 6] : [6];
  if (!family.includes(ipFamilyOf(address)) || port < 1 || port > 65_535) return undefined;
  return { address, port };
}

/** Normalizes a stub domain to lower case without the final dot. Returns undefined for an invalid domain. */
export function parseDomain(text: string): string | undefined {
  const domain = text.toLowerCase().replace(/\.$/, '');
  return /^[a-z0-9_.-]+$/.test(domain) && fitsOnTheWire(domain) ? domain : undefined;
}

export function clusterConfigOf(object: ConfigMap | undefined): ClusterDnsConfig {
  const problems: string[] = [];
  const problem = (field: string, why: string): undefined => {
    problems.push(`ConfigMap ${CONFIG_NAMESPACE}/${CONFIG_NAME}: data.${field}: ${why}`);
    return undefined;
  };
  const json = (field: string): unknown => {
    const text = object?.data?.[field];
    if (text === undefined || text.trim() === '') return undefined;
    try {
      return JSON.parse(text);
    } catch (error) {
      return problem(field, `invalid JSON (${messageOf(error)}); correct it`);
    }
  };
  const servers = (field: string, value: unknown): readonly UpstreamServer[] | undefined => {
    if (!Array.isArray(value) || value.length === 0)
      return problem(field, 'not a list of addresses; write ["10.0.0.1"]');
    const parsed = value.map((each) => (typeof each === 'string' ? parseServer(each) : undefined));
    const wrong = parsed.indexOf(undefined);
    if (wrong >= 0) return problem(field, `${JSON.stringify(value[wrong])} is not ADDRESS or ADDRESS:PORT`);
    return parsed.filter((each) => each !== undefined);
  };
  const stubDomains = new Map<string, readonly UpstreamServer[]>();
  const stubs = json('stubDomains');
  if (stubs !== undefined) {
    if (typeof stubs !== 'object' || stubs === null || Array.isArray(stubs))
      problem('stubDomains', 'not an object; write {"example.com": ["10.0.0.1"]}');
    else {
      for (const [text, value] of Object.entries(stubs)) {
        const domain = parseDomain(text);
        if (domain === undefined) {
          problem('stubDomains', `${JSON.stringify(text)} is not a domain`);
          continue;
        }
        const list = servers(`stubDomains[${domain}]`, value);
        if (list !== undefined) stubDomains.set(domain, list);
      }
    }
  }
  const upstreams = json('upstreamNameservers');
  return {
    upstreams: upstreams === undefined ? undefined : servers('upstreamNameservers', upstreams),
    stubDomains,
    problems,
  };
}

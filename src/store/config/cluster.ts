/** The initial members of a cluster and their validation. Source: etcd's ServerConfig.VerifyBootstrap. */
import { isIP } from 'node:net';
import { type EtcdUrl, parseUrls } from '../../wire/go-flag-values.ts';
import type { EtcdMember } from './settings.ts';

/** Parses `a=http://1,b=http://2,a=http://3` into members sorted by name. */
export function parseInitialCluster(text: string): readonly EtcdMember[] | { readonly problem: string } {
  const byName = new Map<string, EtcdUrl[]>();
  for (const part of text.split(',')) {
    const at = part.indexOf('=');
    const name = part.slice(0, at).trim();
    const value = part.slice(at + 1);
    if (at <= 0 || name === '' || value === '') return { problem: `"${part}" is not of the form NAME=PEER-URL` };
    const urls = parseUrls(value);
    if ('problem' in urls) return { problem: urls.problem };
    byName.set(name, [...(byName.get(name) ?? []), ...urls]);
  }
  return [...byName].map(([name, urls]) => ({ name, peerUrls: urls.map((url) => url.text).sort() }));
}

export interface Founding {
  readonly name: string;
  readonly state: 'new' | 'existing';
  readonly advertised: readonly EtcdUrl[];
}

/** Reason why a cluster with these members cannot be created with this member among them; undefined if it can. */
export function foundingProblem(
  members: readonly EtcdMember[],
  { name, state, advertised }: Founding,
): string | undefined {
  const own = members.find((member) => member.name === name);
  if (own === undefined)
    return `--initial-cluster does not name "${name}", which is this member's --name; add ${name}=PEER-URL`;
  const seen = new Map<string, string>();
  for (const member of members) {
    for (const url of member.peerUrls) {
      const other = seen.get(url);
      if (other !== undefined)
        return `--initial-cluster: ${url} is given twice (${other}, ${member.name}); each address belongs to one member`;
      seen.set(url, member.name);
    }
  }
  if (state === 'existing') return undefined;
  const listed = parseUrls(own.peerUrls.join(','));
  if ('problem' in listed) return listed.problem;
  const missing = advertised.find((url) => !listed.some((each) => isSameAddress(each, url)));
  const extra = listed.find((url) => !advertised.some((each) => isSameAddress(each, url)));
  if (missing !== undefined)
    return `--initial-cluster has no ${name}=${missing.text}, which --initial-advertise-peer-urls names; correct one of the two flags`;
  if (extra !== undefined)
    return `--initial-advertise-peer-urls lacks ${extra.text}, which --initial-cluster gives to ${name}; correct one of the two flags`;
  return undefined;
}

/** Whether two URLs may be the same address. Two names, or a name and an address, may be the same host. */
function isSameAddress(a: EtcdUrl, b: EtcdUrl): boolean {
  if (a.scheme !== b.scheme || a.port !== b.port || a.path !== b.path) return false;
  const [left, right] = [hostOf(a), hostOf(b)];
  return left === right || isIP(left) === 0 || isIP(right) === 0;
}

const hostOf = (url: EtcdUrl): string => (url.host === 'localhost' ? '127.0.0.1' : url.host.toLowerCase());

/** Takes from the host what the pod network and the service proxy have put on it. */
import { messageOf } from '../../base/errors.ts';
import { command } from './command.ts';
import { contains } from './ranges.ts';

export interface HostNetwork {
  /** Links with this name, or with this name and a suffix, are removed. */
  readonly bridge: string;
  /** Tables with this name, or with this name and a suffix, are removed. */
  readonly nftTable: string;
  /** Routes to these ranges, and addresses of services, are removed. */
  readonly clusterCidrs: readonly string[];
  readonly serviceCidrs: readonly string[];
}

interface LinkAddresses {
  readonly ifname: string;
  readonly addr_info?: readonly { readonly local?: string; readonly prefixlen?: number }[];
}

/** Resolves with one line for each thing that could not be removed. */
export async function removeHostNetwork(network: HostNetwork): Promise<string[]> {
  const left: string[] = [];
  const attempt = async (what: string, act: () => Promise<unknown>): Promise<void> => {
    try {
      await act();
    } catch (error) {
      left.push(`${what}: ${messageOf(error)}`);
    }
  };
  await attempt('packet filter', async () => {
    const tables = await command('nft', ['list', 'tables']);
    for (const [, family = '', name = ''] of tables.matchAll(/^table (\S+) (\S+)$/gm))
      if (isOwn(name, network.nftTable)) await command('nft', ['delete', 'table', family, name]);
  });
  const links: LinkAddresses[] = [];
  await attempt('links', async () => {
    links.push(...(JSON.parse(await command('ip', ['-j', 'address', 'show'])) as LinkAddresses[]));
  });
  for (const { ifname, addr_info: addresses = [] } of links) {
    if (isOwn(ifname, network.bridge)) {
      await attempt(`link ${ifname}`, () => command('ip', ['link', 'delete', ifname]));
      continue;
    }
    for (const { local, prefixlen } of addresses)
      if (local !== undefined && network.serviceCidrs.some((cidr) => contains(cidr, local)))
        await attempt(`address ${local}`, () =>
          command('ip', ['address', 'delete', `${local}/${prefixlen}`, 'dev', ifname]),
        );
  }
  for (const family of ['-4', '-6'])
    await attempt('routes', async () => {
      const routes = JSON.parse((await command('ip', [family, '-j', 'route', 'show'])) || '[]') as { dst?: string }[];
      for (const { dst = '' } of routes) {
        const address = dst.split('/')[0] ?? '';
        if ([...network.clusterCidrs, ...network.serviceCidrs].some((cidr) => contains(cidr, address)))
          await command('ip', [family, 'route', 'delete', dst]);
      }
    });
  return left;
}

/** Six hexadecimal digits are the suffix of another instance on this machine. */
function isOwn(name: string, own: string): boolean {
  return name === own || (name.startsWith(`${own}-`) && !/^[0-9a-f]{6}(-|$)/.test(name.slice(own.length + 1)));
}

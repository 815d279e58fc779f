import { decodeJson, list, number, object, optional, text } from '../../../../base/decode.ts';
import { messageOf } from '../../../../base/errors.ts';
import { command } from '../command.ts';
import { removeAcceptRules } from '../filter/forwarding.ts';
import { METRIC } from '../overlay/overlay-kernel.ts';
import type { HostNetworkRecord } from './network-record.ts';
import { contains } from './ranges.ts';

/** Fields of the output of `ip -j` (iproute2) that are used. */
const LINKS = list(object({ ifname: optional(text) }));
const ROUTES = list(object({ dst: optional(text), type: optional(text), metric: optional(number) }));

/**
 * Removes the links, routes and packet filter tables of a record from the host. Resolves with one line for each object
 * that could not be removed. Objects outside the record are not changed.
 */
export async function removeHostNetwork(record: HostNetworkRecord): Promise<string[]> {
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
      if (record.tables.includes(name))
        await attempt(`table ${family} ${name}`, () => command('nft', ['delete', 'table', family, name]));
  });
  await attempt('accept rules', () => removeAcceptRules('nft', record.tables));
  const present = new Set<string>();
  await attempt('links', async () => {
    const links = decodeJson(LINKS, await command('ip', ['-j', 'link', 'show']), 'ip link');
    for (const { ifname = '' } of links) present.add(ifname);
  });
  for (const link of record.links)
    if (present.has(link)) await attempt(`link ${link}`, () => command('ip', ['link', 'delete', link]));
  for (const protocol of record.routeProtocols)
    for (const family of ['-4', '-6'])
      await attempt('routes', () => removeRoutes(family, String(protocol), record.clusterCidrs));
  return left;
}

async function removeRoutes(family: string, protocol: string, clusterCidrs: readonly string[]): Promise<void> {
  const listed = await command('ip', [family, '-j', 'route', 'show', 'proto', protocol]);
  for (const { dst = '', type, metric } of decodeJson(ROUTES, listed.trim() || '[]', 'ip route')) {
    const isOwn = metric === METRIC && clusterCidrs.some((cidr) => contains(cidr, dst.split('/')[0] ?? ''));
    if (!isOwn) continue;
    const route = [...(type === undefined ? [] : [type]), dst, 'proto', protocol, 'metric', String(METRIC)];
    await command('ip', [family, 'route', 'delete', ...route]);
  }
}

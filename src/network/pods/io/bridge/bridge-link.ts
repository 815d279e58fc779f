/** The bridge of the pod network with its gateway addresses, and the host ends of pod links. */
import { existsSync } from 'node:fs';
import { isIP } from 'node:net';
import { addressText, type Network } from '../../../../base/addresses/networks.ts';
import { messageOf } from '../../../../base/errors.ts';
import type { Log } from '../../../../base/log.ts';
import { command } from '../command.ts';
import { setKernel } from '../kernel-setting.ts';
import { gatewayOf } from './addresses.ts';
import { type DesiredLink, POD_LINK_GROUP } from './restored-state.ts';

/** Address of the host end of every pod link: the next hop for the pod's IPv6 traffic. */
export const LINK_GATEWAY = 'fe80::1';

export const gatewayText = (range: Network): string => addressText(gatewayOf(range), range.family);

export async function setUpBridge(ip: string, bridge: string, ranges: readonly Network[]): Promise<void> {
  const [first] = ranges;
  if (first === undefined) return;
  // A bridge without a fixed hardware address changes its address with its ports, which invalidates neighbor caches.
  const low = Number(gatewayOf(first) & 0xffffffffn);
  const mac = ['0a', '58', ...[24, 16, 8, 0].map((shift) => ((low >>> shift) & 255).toString(16).padStart(2, '0'))];
  await command(ip, ['link', 'add', bridge, 'address', mac.join(':'), 'type', 'bridge']).catch((error: unknown) => {
    if (!/File exists/.test(messageOf(error))) throw error;
  });
  const wanted = ranges.map((range) => `${gatewayText(range)}/${range.bits}`);
  const present = await command(ip, ['-o', 'addr', 'show', 'dev', bridge, 'scope', 'global']);
  const found = [...present.matchAll(/inet6? (\S+)/g)].map((match) => match[1] ?? '');
  const isPodGateway = (each: string): boolean => !each.endsWith('/32') && !each.endsWith('/128');
  await command(
    ip,
    ['-batch', '-'],
    [
      ...found
        .filter((each) => !wanted.includes(each) && isPodGateway(each))
        .map((each) => `addr del ${each} dev ${bridge}`),
      ...wanted.map((each) => `addr replace ${each} dev ${bridge}${each.includes(':') ? ' nodad' : ''}`),
      `link set ${bridge} up`,
      '',
    ].join('\n'),
  );
}

/** Desired state of the host end of a pod's link. */
export function desiredLink(link: string, ips: readonly string[], ranges: readonly Network[]): DesiredLink {
  return {
    name: link,
    addresses: ips.some((ip) => isIP(ip) === 6) ? [`${LINK_GATEWAY}/64`] : [],
    routes: ips.map((ip) => {
      const range = ranges.find(({ family }) => family === isIP(ip));
      return { destination: ip, options: range === undefined ? '' : `src ${gatewayText(range)}` };
    }),
    group: POD_LINK_GROUP,
  };
}

/** Prevents a pod's router advertisements from configuring addresses or routes of the host (CVE-2020-10749). */
export async function guardLink(link: string, ips: readonly string[], log: Log): Promise<void> {
  const at = `net/ipv6/conf/${link}`;
  if (!existsSync(`/proc/sys/${at}`)) return;
  await setKernel(`${at}/accept_ra`, '0', log);
  if (!ips.some((ip) => isIP(ip) === 6)) await setKernel(`${at}/disable_ipv6`, '1', log);
}

/** The bridge of the pod network and its gateway addresses. */
import { messageOf } from '../../base/errors.ts';
import { addressText, type Network } from '../../base/networks.ts';
import { gatewayOf } from './addresses.ts';
import { command } from './command.ts';

export const gatewayText = (range: Network): string => addressText(gatewayOf(range), range.family);

export async function setUpBridge(ip: string, bridge: string, ranges: readonly Network[]): Promise<void> {
  const [first] = ranges;
  if (first === undefined) return;
  // The address of its own keeps the bridge's from changing with its ports, which would break neighbor caches.
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

import { networkInterfaces } from 'node:os';
import { messageOf } from '../../../base/errors.ts';
import type { ServiceLink } from '../../dns/port.ts';
import { command } from './command.ts';

/**
 * Creates a link for service addresses of this host: a dummy link, or a bridge without ports if the kernel has no dummy
 * links.
 */
export function createServiceLink(options: { readonly link: string; readonly ipPath?: string }): ServiceLink {
  const { link, ipPath: ip = 'ip' } = options;
  const exists = (error: unknown): void => {
    if (!/File exists/.test(messageOf(error))) throw error;
  };
  const withBits = (address: string): string => `${address}/${address.includes(':') ? 128 : 32}`;
  return {
    async bind(addresses) {
      await command(ip, ['link', 'add', link, 'type', 'dummy']).catch((error: unknown) => {
        if (/File exists/.test(messageOf(error))) return '';
        return command(ip, ['link', 'add', link, 'type', 'bridge']).catch(exists);
      });
      const held = (networkInterfaces()[link] ?? []).map(({ address }) => address);
      const stale = held.filter((address) => !addresses.includes(address) && !address.startsWith('fe80:'));
      await command(
        ip,
        ['-batch', '-'],
        [
          `link set ${link} up`,
          ...stale.map((address) => `addr del ${withBits(address)} dev ${link}`),
          // Duplicate address detection is disabled: a tentative address cannot be bound, and no other host is on the
          // link.
          ...addresses.map((each) => `addr replace ${withBits(each)} dev ${link}${each.includes(':') ? ' nodad' : ''}`),
          '',
        ].join('\n'),
      );
    },
    async isBound(addresses) {
      const held = await command(ip, ['-oneline', 'address', 'show', 'dev', link]).catch(() => '');
      const words = held.split(/\s+/);
      return addresses.every((address) => words.includes(withBits(address)));
    },
    async remove() {
      await command(ip, ['link', 'del', link]).catch((error: unknown) => {
        if (!/Cannot find device/.test(messageOf(error))) throw error;
      });
    },
  };
}

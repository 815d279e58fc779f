/**
 * An address that moves between hosts. The kernel announces the addresses of a link when its hardware address is set:
 * by gratuitous ARP with `arp_notify`, by unsolicited neighbour advertisements with `ndisc_notify`. Source:
 * kernel documentation, networking/ip-sysctl.
 */
import { writeFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { command } from './command.ts';

export interface SharedAddressOptions {
  readonly address: string;
  readonly link: string;
  /** The kernel removes the address this long after the last `add` or `extend`. */
  readonly lifetimeSeconds: number;
}

export interface SharedAddress {
  /** Adds and announces it. Rejects with RuntimeError 'network'. */
  add(): Promise<void>;
  /** Extends its lifetime, and adds it again where it is missing. */
  extend(): Promise<void>;
  /** Never rejects. */
  remove(): Promise<void>;
}

export function createSharedAddress({ address, link, lifetimeSeconds }: SharedAddressOptions): SharedAddress {
  const isIpv6 = address.includes(':');
  const prefix = `${address}/${isIpv6 ? 128 : 32}`;
  const lifetime = String(lifetimeSeconds);
  const extend = async (): Promise<void> => {
    const flags = isIpv6 ? ['nodad'] : [];
    await command('ip', [
      ...['address', 'replace', prefix, 'dev', link],
      ...['valid_lft', lifetime, 'preferred_lft', lifetime, ...flags],
    ]);
  };
  return {
    add: async () => {
      const family = isIpv6 ? 'ipv6' : 'ipv4';
      await writeFile(`/proc/sys/net/${family}/conf/${link}/${isIpv6 ? 'ndisc_notify' : 'arp_notify'}`, '1');
      await extend();
      const hardware = networkInterfaces()[link]?.find(({ mac }) => mac !== '')?.mac;
      if (hardware === undefined) return;
      // Adding an address is not announced; setting the hardware address, to what it is, announces all of the link.
      await command('ip', ['link', 'set', 'dev', link, 'address', hardware]).catch(() => {
        // A driver that refuses while the link is up; the neighbours learn the address when their entries expire.
      });
    },
    extend,
    remove: async () => {
      await command('ip', ['address', 'del', prefix, 'dev', link]).catch(() => {});
    },
  };
}

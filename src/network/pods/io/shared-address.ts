/**
 * An address that moves between hosts. The kernel announces the addresses of a link when its hardware address is set:
 * by gratuitous ARP with `arp_notify`, by unsolicited neighbor advertisements with `ndisc_notify`. Source: kernel
 * documentation, networking/ip-sysctl.
 */

import { writeFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { ignore } from '../../../base/errors.ts';
import { command } from './command.ts';

export interface SharedAddressOptions {
  readonly address: string;
  readonly link: string;
  /** The kernel removes the address this long after the last `add` or `extend`. */
  readonly lifetimeSeconds: number;
}

export interface SharedAddress {
  /** Adds and announces the address. Rejects with RuntimeError 'network'. */
  add(): Promise<void>;
  /** Extends the lifetime, and adds the address again if it is missing. */
  extend(): Promise<void>;
  /** Removes the address from the link. Never rejects. */
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
      // Adding an address does not announce it. Setting the hardware address to its current value announces all
      // addresses.
      await command('ip', ['link', 'set', 'dev', link, 'address', hardware]).catch(() => {
        // Some drivers refuse this while the link is up. The neighbors then update when their entries expire.
      });
    },
    extend,
    remove: async () => {
      await command('ip', ['address', 'del', prefix, 'dev', link]).catch(
        ignore('the address or the link may have been removed'),
      );
    },
  };
}

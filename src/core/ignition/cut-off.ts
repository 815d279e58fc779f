/** Whether a change may cut a host off from its cluster, perhaps some time after it was made. */
import type { ConfigChanges } from './difference.ts';
import type { Disruption } from './disruption.ts';

/** What decides whether a host is reached, names are found and peers are trusted; timers that may change it later. */
const PLACES = [
  '/etc/NetworkManager/',
  '/etc/ca-certificates',
  '/etc/cron',
  '/etc/dhcp',
  '/etc/firewall',
  '/etc/hostname',
  '/etc/hosts',
  '/etc/ifplugd',
  '/etc/iptables',
  '/etc/kubernetes/',
  '/etc/modprobe.d/',
  '/etc/modules',
  '/etc/netplan/',
  '/etc/network',
  '/etc/nftables',
  '/etc/nsswitch.conf',
  '/etc/pki/',
  '/etc/resolv',
  '/etc/rc.local',
  '/etc/ssl/',
  '/etc/sysconfig/network',
  '/etc/sysctl',
  '/etc/systemd/',
  '/etc/udev/',
  '/etc/ufw/',
  '/etc/wpa_supplicant/',
];

/** True for every change that restarts something, too. A registry's mirrors and keys cut nothing off. */
export function mayCutOff({ files, units, kernelArguments }: ConfigChanges, { steps }: Disruption): boolean {
  return (
    kernelArguments ||
    units.length > 0 ||
    steps.some(({ kind }) => kind !== 'reload-images') ||
    files.some((path) => PLACES.some((place) => path.startsWith(place)))
  );
}

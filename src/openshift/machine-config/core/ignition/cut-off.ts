/** Decides whether a change may disconnect a host from its cluster, immediately or later. */
import type { ConfigChanges } from './difference.ts';
import type { Disruption } from './disruption.ts';

/** Prefixes of paths that affect connectivity, name resolution or trust, or of timers that may change these later. */
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

/**
 * Whether the change may disconnect the host. Every change that restarts a unit may do so. Settings of registries do
 * not affect connectivity.
 */
export function mayCutOff({ files, units, kernelArguments }: ConfigChanges, { steps }: Disruption): boolean {
  return (
    kernelArguments ||
    units.length > 0 ||
    steps.some(({ kind }) => kind !== 'reload-images') ||
    files.some((path) => PLACES.some((place) => path.startsWith(place)))
  );
}

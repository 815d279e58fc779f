/** Paths and units that no MachineConfig may change, with the reason for each. */

const ACCOUNTS = 'the file contains the accounts of the host; use passwd.users[].sshAuthorizedKeys for keys';
const IDENTITY = 'the file identifies the host';
const KERNEL = 'the path belongs to the running kernel; use a tmpfiles.d or sysctl.d file';
const VOLATILE = 'the file does not survive a reboot; use a tmpfiles.d file';
const KERNEL_ARGUMENTS = 'the file contains the kernel arguments; use spec.kernelArguments';
const OWN = 'hyperedge manages the file; change the bootstrap file, a KubeletConfig or the node group';

const FILES: ReadonlyMap<string, string> = new Map([
  ...['passwd', 'shadow', 'group', 'gshadow', 'subuid', 'subgid'].flatMap((name): [string, string][] => [
    [`/etc/${name}`, ACCOUNTS],
    [`/etc/${name}-`, ACCOUNTS],
  ]),
  ['/etc/sudoers', 'the file grants root access to the host; write a file below /etc/sudoers.d'],
  ['/etc/machine-id', IDENTITY],
  ['/var/lib/dbus/machine-id', IDENTITY],
  ['/etc/sysconfig/atomic-openshift-node', OWN],
  ['/usr/local/bin/hyperedge', OWN],
  ['/etc/tmpfiles.d/hyperedge.conf', OWN],
  ['/etc/systemd/system-preset/80-hyperedge.preset', OWN],
  ...[
    '/boot/firmware/cmdline.txt',
    '/boot/cmdline.txt',
    '/boot/extlinux/extlinux.conf',
    '/etc/default/grub.d/90-hyperedge.cfg',
  ].map((path): [string, string] => [path, KERNEL_ARGUMENTS]),
  ['/run/machine-config-daemon-force', 'the file disables the checks of this host'],
]);

const TREES: readonly (readonly [string, string])[] = [
  ['/proc/', KERNEL],
  ['/sys/', KERNEL],
  ['/dev/', KERNEL],
  ['/run/', VOLATILE],
  ['/var/run/', VOLATILE],
  ['/tmp/', VOLATILE],
  ['/etc/origin/', OWN],
  ['/var/lib/origin/', OWN],
  ['/var/lib/kubelet/', OWN],
];
const HOST_KEY = /^\/etc\/ssh\/ssh_host_[^/]*$/;
const OWN_UNIT = /^(?:hyperedge(?:[-.@].*)?|kubepods.*)$/;
const UNIT_FILE = /^\/(?:etc|usr\/lib|lib|usr\/local\/lib)\/systemd\/system(?:\.control|\.attached)?\/([^/]+)/;
/** Pattern of unit names as in systemd.unit(5): a name and a type, without a slash. */
const UNIT_NAME =
  /^[A-Za-z0-9:_.\\@-]{1,240}\.(?:service|socket|device|mount|automount|swap|target|path|timer|slice|scope)$/;
const DROPIN_NAME = /^[A-Za-z0-9:_.\\@-]{1,240}\.conf$/;

/** Reason why a config must not write the file; undefined if it may. `path` must satisfy `isCleanPath`. */
export function guardedPath(path: string): string | undefined {
  const exact = FILES.get(path) ?? FILES.get(fatName(path));
  if (exact !== undefined) return exact;
  if (HOST_KEY.test(path)) return IDENTITY;
  const unit = UNIT_FILE.exec(path)?.[1];
  if (unit !== undefined && guardedUnit(unit.replace(/\.d$/, '')) !== undefined) return OWN;
  return TREES.find(([tree]) => path.startsWith(tree) || `${path}/` === tree)?.[1];
}

/** Normalizes a path below /boot, which may be a FAT file system. FAT ignores case, and dots at the end of a name. */
function fatName(path: string): string {
  if (!path.startsWith('/boot/')) return path;
  return path
    .toLowerCase()
    .split('/')
    .map((part) => part.replace(/\.+$/, ''))
    .join('/');
}

/** Reason why a config must not change the unit; undefined if it may. */
export const guardedUnit = (name: string): string | undefined => (OWN_UNIT.test(name) ? OWN : undefined);

export const isUnitName = (name: string): boolean => UNIT_NAME.test(name) && !name.startsWith('.');
export const isDropinName = (name: string): boolean => DROPIN_NAME.test(name) && !name.startsWith('.');

/**
 * Whether the path is absolute, has at most 4095 bytes, and contains no `.`, `..`, `//`, final slash or control
 * character.
 */
export function isCleanPath(path: string): boolean {
  if (!path.startsWith('/') || path === '/' || path.length > 4095) return false;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  if (/[\u0000-\u001f\u007f]/.test(path)) return false;
  return path
    .slice(1)
    .split('/')
    .every((part) => part !== '' && part !== '.' && part !== '..' && part.length <= 255);
}

/** Capabilities of containers. */
import { CAPABILITY_NAMES as NAMES, unknownCapability } from '../../../base/linux/capability-names.ts';
import { type ContainerSecurity, RuntimeError } from '../../port.ts';

/** Capabilities of an unprivileged container by default; the same set as in other container engines. */
const DEFAULTS =
  'CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE'.split(
    ' ',
  );

export const hasCapability = (set: bigint, name: string): boolean => {
  const bit = NAMES.indexOf(name);
  return bit >= 0 && ((set >> BigInt(bit)) & 1n) === 1n;
};

/**
 * Capability names with the prefix `CAP_`. Throws RuntimeError 'create-failed' for an unknown name. Capabilities that
 * this process lacks (not in `available`) are omitted, because they cannot be granted.
 */
export function containerCapabilities(security: ContainerSecurity, available: bigint): readonly string[] {
  const possible = NAMES.filter((name) => hasCapability(available, name));
  const granted = new Set(security.privileged ? possible : DEFAULTS);
  const plain = (name: string): string => name.toUpperCase().replace(/^CAP_/, '');
  const drop = security.dropCapabilities.map(plain);
  const add = security.addCapabilities.map(plain);
  const unknown = unknownCapability([...add, ...drop]);
  if (unknown !== undefined) throw new RuntimeError('create-failed', `unknown capability ${JSON.stringify(unknown)}`);
  if (drop.includes('ALL')) granted.clear();
  if (add.includes('ALL')) for (const name of possible) granted.add(name);
  for (const name of drop) granted.delete(name);
  for (const name of add) granted.add(name);
  return possible.filter((name) => granted.has(name)).map((name) => `CAP_${name}`);
}

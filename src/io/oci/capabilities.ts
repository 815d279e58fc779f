/** Capability names in kernel bit order (capabilities(7)), and the sets that containers get. */
import { CAPABILITY_NAMES as NAMES, unknownCapability } from '../../base/capability-names.ts';
import { type ContainerSecurity, RuntimeError } from '../../core/podplan/port.ts';

/** What an unprivileged container has unless its pod says otherwise; the set that container engines agreed on. */
const DEFAULTS =
  'CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE'.split(
    ' ',
  );

export const hasCapability = (set: bigint, name: string): boolean => {
  const bit = NAMES.indexOf(name);
  return bit >= 0 && ((set >> BigInt(bit)) & 1n) === 1n;
};

/**
 * Names with their `CAP_` prefix. Throws RuntimeError 'create-failed' for a name that is none. Capabilities that this
 * process itself lacks (`available`) cannot be handed on.
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

/**
 * Selection of hosts that probe a host being updated, and evaluation of their results. A partitioned host passes its
 * own probes, so an update is confirmed only if most probing hosts reach it.
 */
import type { PeerReport } from '../../../api/kinds/nodes/nodes/host-report.ts';

export interface PeerHost {
  readonly name: string;
  readonly master: boolean;
  readonly ready: boolean;
  /** Probe results of the host. Undefined if its release does not support probes. */
  readonly report: PeerReport | undefined;
}

const MAX_PROBERS = 3;

/** Returns the hosts that probe `target`: masters come first, then hosts are sorted by name. */
export function probersOf(target: string, hosts: readonly PeerHost[]): PeerHost[] {
  return hosts
    .filter(({ name, ready, report }) => name !== target && ready && report !== undefined)
    .sort((left, right) => Number(right.master) - Number(left.master) || (left.name < right.name ? -1 : 1))
    .slice(0, MAX_PROBERS);
}

/**
 * Reason why most probing hosts do not reach `target`. Empty if they reach it, or if no host probes it. `id`: ID of the
 * update.
 */
export function unreachableReason(target: string, id: string, hosts: readonly PeerHost[]): string {
  const probers = probersOf(target, hosts);
  const results = probers.map(({ name, report }) => {
    const result = report?.[target];
    return { name, why: result?.id === id ? result.why : 'has not probed it yet' };
  });
  const failed = results.filter(({ why }) => why !== '');
  if (failed.length * 2 < probers.length || probers.length === 0) return '';
  const what = failed.map(({ name, why }) => `${name}: ${why}`).join('; ');
  return `${probers.length - failed.length} of ${probers.length} other hosts reach this host: ${what}`;
}

/**
 * Which hosts probe a host under update, and what their results mean. A host that reaches nothing but itself passes its
 * own probes; an update is confirmed only when most of its probers reach it.
 */
import type { PeerReport } from '../../api/kinds/nodes/host-report.ts';

export interface PeerHost {
  readonly name: string;
  readonly master: boolean;
  readonly ready: boolean;
  /** Undefined: its release does not probe others. */
  readonly report: PeerReport | undefined;
}

const MAX_PROBERS = 3;

/** The hosts that probe `target`: masters first, then by name. */
export function probersOf(target: string, hosts: readonly PeerHost[]): PeerHost[] {
  return hosts
    .filter(({ name, ready, report }) => name !== target && ready && report !== undefined)
    .sort((left, right) => Number(right.master) - Number(left.master) || (left.name < right.name ? -1 : 1))
    .slice(0, MAX_PROBERS);
}

/** Empty: most probers reach `target`, or there are none; otherwise why not. `id`: of the update. */
export function unreached(target: string, id: string, hosts: readonly PeerHost[]): string {
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

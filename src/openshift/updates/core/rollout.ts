/**
 * Updates one host after another: masters first, with the leader of the store last among them, then the other hosts by
 * zone and age. Decisions depend only on the hosts' reports, so that any master can continue a rollout.
 */
import type { HostUpdate, WantedUpdate } from '../../../api/kinds/nodes/nodes/host-report.ts';

export interface RolloutHost {
  readonly name: string;
  readonly master: boolean;
  readonly leadsStore: boolean;
  /** The Node is Ready, the report is recent, and no probe fails. */
  readonly healthy: boolean;
  /** Whether the host has not reported recently, so that it may be without power or network. */
  readonly silent: boolean;
  /** Reason why the host is not healthy. */
  readonly fault: string;
  /** Version of the running host process; empty if unknown. */
  readonly version: string;
  readonly zone: string;
  readonly createdMs: number;
  /** The host's pool is paused, so it keeps its version. */
  readonly paused: boolean;
  readonly wanted: WantedUpdate | undefined;
  readonly update: HostUpdate | undefined;
  /** Milliseconds since this leader first saw that the update is in progress; 0 if no update is in progress. */
  readonly underWayMs: number;
}

export type RolloutStep =
  | { readonly step: 'done'; readonly updated: number; readonly skipped: readonly string[] }
  /** The named host should start its update. */
  | { readonly step: 'begin'; readonly host: string; readonly updated: number; readonly of: number }
  | { readonly step: 'wait'; readonly message: string; readonly updated: number; readonly of: number }
  | { readonly step: 'failed'; readonly host: string; readonly message: string };

/** Time within which a host must report the end of its update. Otherwise the update of the host has failed. */
export const HOST_DEADLINE_MS = 600_000;

/**
 * Returns the next step of a rollout. `ignoresFaults`: hosts of another version may be unhealthy, because the rollout
 * replaces the release that caused their faults. They are updated before
 * healthy hosts of the same rank, and silent hosts last.
 */
export function planRollout(hosts: readonly RolloutHost[], target: WantedUpdate, ignoresFaults = false): RolloutStep {
  const concerned = hosts.filter(({ paused }) => !paused);
  const skipped = hosts.filter((host) => host.paused && !isAt(host, target)).map(({ name }) => name);
  const failed = concerned.find((host) => failure(host, target) !== undefined);
  if (failed !== undefined) return { step: 'failed', host: failed.name, message: failure(failed, target) ?? '' };
  const updated = concerned.filter((host) => isAt(host, target)).length;
  const counts = { updated, of: concerned.length };
  const underWay = concerned.find((host) => isUnderWay(host, target));
  if (underWay !== undefined) {
    const what = underWay.update?.id === target.id ? underWay.update.state.toLowerCase() : 'requested';
    const message = isAt(underWay, target)
      ? `${underWay.name}: ${underWay.fault || 'the host has not confirmed the update yet'}`
      : `updating ${underWay.name} (${what})`;
    return { step: 'wait', message, ...counts };
  }
  const order = ignoresFaults ? byFaultsThenOrder : byOrder;
  const next = concerned.filter((host) => !isAt(host, target)).sort(order)[0];
  if (next === undefined) return { step: 'done', updated, skipped };
  const unhealthy = concerned.find((host) => !host.healthy && host !== next && (!ignoresFaults || isAt(host, target)));
  if (unhealthy !== undefined)
    return { step: 'wait', message: `waiting for ${unhealthy.name}: ${unhealthy.fault}`, ...counts };
  // A silent host would exceed the deadline of its update, so the rollout waits for the host.
  if (ignoresFaults && next.silent)
    return { step: 'wait', message: `waiting for ${next.name}: ${next.fault}`, ...counts };
  return { step: 'begin', host: next.name, ...counts };
}

const isAt = (host: RolloutHost, target: WantedUpdate): boolean => host.version === target.version;

/** Whether the host has not yet confirmed this update. Until then, the host may still roll its new version back. */
function isUnderWay(host: RolloutHost, target: WantedUpdate): boolean {
  if (host.wanted?.id !== target.id) return false;
  const isConfirmed = host.update?.id === target.id && host.update.state === 'Done';
  return !isAt(host, target) || !host.healthy || !isConfirmed;
}

function failure(host: RolloutHost, target: WantedUpdate): string | undefined {
  const { update, wanted, underWayMs } = host;
  if (update?.id === target.id && update.state === 'Failed') return update.message;
  if (wanted?.id === target.id && underWayMs > HOST_DEADLINE_MS && isUnderWay(host, target))
    return `not healthy after ${HOST_DEADLINE_MS / 60_000} minutes: ${host.fault || 'no report'}`;
  return undefined;
}

function rank({ master, leadsStore }: RolloutHost): number {
  if (!master) return 2;
  return leadsStore ? 1 : 0;
}

function byFaultsThenOrder(a: RolloutHost, b: RolloutHost): number {
  const masters = Number(b.master) - Number(a.master);
  return Number(a.silent) - Number(b.silent) || masters || Number(a.healthy) - Number(b.healthy) || byOrder(a, b);
}

function byOrder(a: RolloutHost, b: RolloutHost): number {
  const byZone = a.zone < b.zone ? -1 : Number(a.zone > b.zone);
  return rank(a) - rank(b) || byZone || a.createdMs - b.createdMs || (a.name < b.name ? -1 : 1);
}

/** Hosts of the inventory: decides whether a machine may claim a host, and computes the status of hosts. */

import { labelSelectorOf, matchesLabels } from '../../../base/selector.ts';
import { countText } from '../../../base/text/count-text.ts';
import { timeMs } from '../../../base/time/timestamps.ts';
import {
  type BareMetalHost,
  type HostState,
  type HostStatus,
  type Machine,
  OFFER_ANNOTATION,
  type ProviderSpec,
  REPORTED_ANNOTATION,
} from '../kinds/machine-types.ts';

/**
 * Time without a report after which a host that has offered itself counts as offline. Hosts report several times within
 * it.
 */
export const SILENT_MS = 150_000;
/** Time without a report after which an offer that was never approved is deleted. */
export const FORGOTTEN_MS = 15 * 60_000;

export const isOffered = (host: BareMetalHost): boolean =>
  (host.metadata?.annotations?.[OFFER_ANNOTATION] ?? '') !== '';

export const reportsBlank = (host: BareMetalHost): boolean =>
  host.metadata?.annotations?.[REPORTED_ANNOTATION] === 'blank';

/** Time of the last report. Until the first report is written to the status, it is the creation time of the object. */
const lastSeenMs = ({ metadata, status }: BareMetalHost): number =>
  timeMs(status?.lastUpdated ?? metadata?.creationTimestamp);

export const isSilent = (host: BareMetalHost, nowMs: number): boolean => nowMs - lastSeenMs(host) > SILENT_MS;

/** Reason why a machine may not claim the host; undefined if it may. */
export function refusalToClaim(
  host: BareMetalHost,
  provider: ProviderSpec | undefined,
  nowMs: number,
): string | undefined {
  const { metadata, spec, status } = host;
  const selector = provider?.hostSelector;
  if (selector !== undefined && !matchesLabels(labelSelectorOf(selector), metadata?.labels)) return 'not selected';
  if (metadata?.deletionTimestamp !== undefined) return 'deleted';
  if (spec?.consumerRef !== undefined) return 'claimed';
  if (spec?.externallyProvisioned === true) return 'externally provisioned';
  if (spec?.online !== true) return 'not online';
  if ((status?.errorType ?? '') !== '') return 'in error';
  if (status?.provisioning?.state !== 'available') return status?.provisioning?.state ?? 'registering';
  if (isOffered(host) && isSilent(host, nowMs)) return 'silent';
  return undefined;
}

/** Host that the machine claims: the first claimable host by name, so that the choice is deterministic. */
export function hostToClaim(
  hosts: readonly BareMetalHost[],
  provider: ProviderSpec | undefined,
  nowMs: number,
): BareMetalHost | undefined {
  return hosts
    .filter((host) => refusalToClaim(host, provider, nowMs) === undefined)
    .sort((left, right) => ((left.metadata?.name ?? '') < (right.metadata?.name ?? '') ? -1 : 1))[0];
}

/** Summarizes why no host can be claimed, for example `2 hosts: 1 claimed, 1 not online`. */
export function whyNone(hosts: readonly BareMetalHost[], provider: ProviderSpec | undefined, nowMs: number): string {
  const counts = new Map<string, number>();
  for (const host of hosts) {
    const why = refusalToClaim(host, provider, nowMs) ?? 'free';
    counts.set(why, (counts.get(why) ?? 0) + 1);
  }
  const parts = [...counts].map(([why, count]) => `${count} ${why}`);
  return `${countText(hosts.length, 'host')}${parts.length === 0 ? '' : `: ${parts.sort().join(', ')}`}`;
}

export interface HostPlan {
  readonly status: HostStatus;
  /** Whether the object must be deleted, because the host's offer was never approved and the host no longer reports. */
  readonly forget: boolean;
  /** Milliseconds until the plan may change without an event; undefined if only an event can change it. */
  readonly nextMs: number | undefined;
}

/** Result of an inspection over SSH. */
export interface Inspection {
  readonly status: Pick<HostStatus, 'hardware' | 'goodCredentials'>;
  readonly error: string | undefined;
}

export function planHost(
  host: BareMetalHost,
  consumer: Machine | undefined,
  inspection: Inspection | undefined,
  nowMs: number,
): HostPlan {
  const { spec, metadata, status: before = {} } = host;
  const { errorType: _t, errorMessage: _m, errorCount: _c, ...kept } = before;
  const base: HostStatus = { ...kept, hardwareProfile: 'unknown' };
  const plan = (state: HostState, more: Partial<HostStatus> = {}, nextMs?: number): HostPlan => ({
    status: { ...base, operationalStatus: 'OK', ...more, provisioning: provisioning(state, spec?.consumerRef?.uid) },
    forget: false,
    nextMs,
  });
  const failed = (state: HostState, errorType: string, errorMessage: string): HostPlan =>
    plan(state, { operationalStatus: 'error', errorType, errorMessage, errorCount: (before.errorCount ?? 0) || 1 });
  if (spec?.externallyProvisioned === true) return plan('externally provisioned');
  if (spec?.consumerRef !== undefined) return plan(claimedState(host, consumer));
  if (metadata?.deletionTimestamp !== undefined) return plan('deleting');
  if (isOffered(host)) return offered(host, plan, failed, nowMs);
  if (spec?.bmc === undefined)
    return failed(
      'registering',
      'registration error',
      'spec.bmc: missing; give an address of the form ssh://HOST, or run hyperedge install --offer on the host',
    );
  if (inspection === undefined) return plan(before.provisioning?.state === 'available' ? 'available' : 'registering');
  if (inspection.error !== undefined) return failed('registering', 'registration error', inspection.error);
  return plan('available', { ...inspection.status, poweredOn: true });
}

function offered(
  host: BareMetalHost,
  plan: (state: HostState, more?: Partial<HostStatus>, nextMs?: number) => HostPlan,
  failed: (state: HostState, errorType: string, errorMessage: string) => HostPlan,
  nowMs: number,
): HostPlan {
  const seenMs = lastSeenMs(host);
  if (!reportsBlank(host)) {
    // The host stays in the state deprovisioning, which instructs it to wipe itself, until it reports that it is blank.
    if (host.status?.provisioning?.state === 'deprovisioning')
      return failed('deprovisioning', 'provisioning error', 'the host has not reported that it is wiped');
    return failed(
      'provisioned',
      'registration error',
      'the host runs as a node and no Machine has claimed it; run hyperedge reset on the host',
    );
  }
  if (nowMs - seenMs <= SILENT_MS) return plan('available', { poweredOn: true }, seenMs + SILENT_MS + 1);
  const forget = host.spec?.online !== true && nowMs - seenMs > FORGOTTEN_MS;
  const detached = plan('available', { operationalStatus: 'detached', poweredOn: false }, seenMs + FORGOTTEN_MS + 1);
  return { ...detached, forget };
}

function claimedState(host: BareMetalHost, consumer: Machine | undefined): HostState {
  if (host.metadata?.deletionTimestamp !== undefined) return 'deleting';
  // The machine controller has requested the wipe by setting this state.
  if (host.status?.provisioning?.state === 'deprovisioning') return 'deprovisioning';
  const phase = consumer?.status?.phase;
  return phase === 'Provisioned' || phase === 'Running' || phase === 'Deleting' ? 'provisioned' : 'provisioning';
}

const provisioning = (state: HostState, ID: string | undefined): HostStatus['provisioning'] & object => ({
  state,
  ID: ID ?? '',
});

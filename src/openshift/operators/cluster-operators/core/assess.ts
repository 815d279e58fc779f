/** Combines the probe results of one operator into findings for its conditions. */
import type { HostProbe } from '../../../../api/kinds/nodes/nodes/host-report.ts';
import { type HostFact, MAX_AGE_MS, type Probed, type ProbeFacts } from './facts.ts';

export interface Finding {
  readonly reason: string;
  readonly message: string;
}

/** Findings for the conditions of an operator. An unset finding means that the condition has its good status. */
export interface Assessment {
  readonly unavailable?: Finding;
  /** Set if no probe result is available. */
  readonly unknown?: Finding;
  readonly degraded?: Finding;
  readonly progressing?: Finding;
  readonly notUpgradeable?: Finding;
  /** Message of the condition Available=True. */
  readonly well: string;
}

export interface HostsFinding {
  readonly passed: readonly string[];
  readonly failed: readonly Finding[];
  /** Number of hosts that run the probe or have not reported yet. */
  readonly all: number;
}

const MAX_NAMED = 3;

/**
 * Divides the hosts into those that pass and those that fail a probe. A host that was silent for 30 s counts as failed.
 */
export function onHosts(
  facts: ProbeFacts,
  probe: HostProbe,
  { mastersOnly = false }: { readonly mastersOnly?: boolean } = {},
): HostsFinding {
  const passed: string[] = [];
  const failed: Finding[] = [];
  const hosts = facts.hosts.filter((host) => isAffected(host, probe, mastersOnly));
  for (const host of hosts) {
    const result = host.report?.probes[probe];
    if (host.ageMs > MAX_AGE_MS)
      failed.push({ reason: 'HostSilent', message: `${host.name}: the host does not report` });
    else if (result === undefined) failed.push({ reason: 'NoReport', message: `${host.name}: no report yet` });
    else if (result !== '') failed.push({ reason: 'ProbeFailed', message: `${host.name}: ${result}` });
    else passed.push(host.name);
  }
  return { passed, failed, all: hosts.length };
}

/**
 * Whether the host should pass the probe. A host that reports other probes but not this one does not run the component.
 */
function isAffected({ master, report }: HostFact, probe: HostProbe, mastersOnly: boolean): boolean {
  if (mastersOnly && !master) return false;
  return report === undefined || report.probes[probe] !== undefined;
}

export const listed = (findings: readonly Finding[]): string =>
  findings
    .slice(0, MAX_NAMED)
    .map(({ message }) => message)
    .join('; ') + (findings.length > MAX_NAMED ? `; and ${findings.length - MAX_NAMED} more` : '');

/**
 * Assessment of a component that runs on several hosts. The component is available if it responds on at least one host,
 * and degraded unless it responds on all hosts.
 */
export function perHost(what: string, reason: string, { passed, failed, all }: HostsFinding): Assessment {
  const well = `${what} answers on ${hostCountText(passed.length, all)}`;
  if (failed.length === 0) return { well };
  const silent = failed.every((each) => each.reason === 'NoReport');
  const finding = { reason: `${reason}Degraded`, message: `${well}; ${listed(failed)}` };
  if (passed.length > 0) return { well, degraded: finding };
  if (silent) return { well, unknown: { reason: 'NoReport', message: `${what}: ${listed(failed)}` } };
  return {
    well,
    degraded: finding,
    unavailable: { reason: `${reason}Unavailable`, message: `${what} does not respond: ${listed(failed)}` },
  };
}

export const hostCountText = (some: number, all: number): string => `${some} of ${all} ${all === 1 ? 'host' : 'hosts'}`;

/** Returns the value of a recent probe result; otherwise the assessment that the operator reports instead. */
export function recentValue<T>(
  probed: Probed<T>,
  what: string,
): { readonly value: T } | { readonly otherwise: Assessment } {
  const well = '';
  if (probed.state === 'absent' || probed.state === 'none' || probed.ageMs > MAX_AGE_MS) {
    return { otherwise: { well, unknown: { reason: 'NoProbe', message: `${what}: no probe within 30 s` } } };
  }
  if (probed.state === 'value') return { value: probed.value };
  const message = `${what}: ${probed.message}`;
  return {
    otherwise: {
      well,
      unavailable: { reason: 'ProbeFailed', message },
      degraded: { reason: 'ProbeFailed', message },
    },
  };
}

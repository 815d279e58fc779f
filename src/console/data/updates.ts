/** Progress of an update of the cluster on each host, from the reports of the hosts on their nodes. */
import type { Node } from '../../api/generated/core/v1.ts';
import { hostReportOf, hostUpdateOf, wantedUpdateOf } from '../../api/kinds/nodes/nodes/host-report.ts';
import { nodeState } from './health.ts';

export interface HostVersion {
  readonly name: string;
  /** Version of the running host process; '' if the host has not reported it. */
  readonly version: string;
  readonly isUpdated: boolean;
  readonly level: 'good' | 'warn' | 'bad';
  readonly text: string;
}

export interface UpdateProgress {
  readonly hosts: readonly HostVersion[];
  readonly updated: number;
  /** `2 of 3 hosts have version 0.2.0.` */
  readonly sentence: string;
}

const STEPS = {
  Fetching: 'copies the release',
  Restarting: 'restarts, and is checked before the next host starts',
} as const;

/** Hosts by name. `target`: version that the cluster has or is being updated to. */
export function updateProgress(nodes: readonly Node[], target: string): UpdateProgress {
  const hosts = nodes
    .map((node) => hostVersion(node, target))
    .sort((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));
  const updated = hosts.filter(({ isUpdated }) => isUpdated).length;
  const count = hosts.length === 1 ? '1 host has' : `${hosts.length} hosts have`;
  const sentence =
    updated === hosts.length
      ? `${hosts.length === 1 ? 'The host has' : `All ${hosts.length} hosts have`} version ${target}.`
      : `${updated} of ${count} version ${target}.`;
  return { hosts, updated, sentence };
}

function hostVersion(node: Node, target: string): HostVersion {
  const version = hostReportOf(node)?.version ?? '';
  const isUpdated = version === target;
  const wanted = wantedUpdateOf(node);
  const update = hostUpdateOf(node);
  const isCurrent = wanted !== undefined && wanted.version === target && update?.id === wanted.id;
  const base = { name: node.metadata?.name ?? '', version, isUpdated };
  if (isCurrent && update?.state === 'Failed') return { ...base, level: 'bad', text: `failed: ${update.message}` };
  const step = isCurrent && (update?.state === 'Fetching' || update?.state === 'Restarting') ? update.state : undefined;
  if (step !== undefined) return { ...base, level: 'warn', text: STEPS[step] };
  const { level, text } = nodeState(node);
  if (level === 'bad') return { ...base, level, text: text === 'Unreachable' ? 'does not answer' : 'is not ready' };
  if (isUpdated) return { ...base, level: 'good', text: 'has this version' };
  if (version === '') return { ...base, level: 'warn', text: 'has not reported its version' };
  return { ...base, level: 'warn', text: wanted?.version === target ? 'starts its update' : 'waits for its turn' };
}

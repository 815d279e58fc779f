/** Progress of a cluster update on each host, from the reports that hosts write to their nodes. */
import type { Node } from '../../../api/generated/core/v1.ts';
import {
  type HostUpdate,
  hostReportOf,
  hostUpdateOf,
  type WantedUpdate,
  wantedUpdateOf,
} from '../../../api/kinds/nodes/nodes/host-report.ts';
import { type AnyObject, conditionOf, numberAt, textAt } from '../api/resources.ts';
import { nodeState } from './node-state.ts';

export interface HostProgress {
  readonly name: string;
  /** Version of the running host process; '' if it is unknown. */
  readonly version: string;
  readonly phase: string;
  readonly level: 'good' | 'warn' | 'bad' | 'muted';
  readonly message: string;
  /** Start of the phase; '' if the host does not report it. */
  readonly since: string;
}

export const desiredVersion = (version: AnyObject): string => textAt(version, 'status', 'desired', 'version');

export const isUpdating = (version: AnyObject): boolean => conditionOf(version, 'Progressing')?.status === 'True';

export interface UpdateProgress {
  /** Progress of each host, sorted by name. */
  readonly hosts: readonly HostProgress[];
  readonly updated: number;
  /** Text such as `2 of 3 hosts have version 0.2.0.` */
  readonly sentence: string;
}

export function updateProgress(version: AnyObject, nodes: readonly Node[]): UpdateProgress {
  const target = desiredVersion(version);
  const hosts = nodes
    .map((node) => withHealth(progressOf(version, node), node))
    .sort((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));
  const updated = hosts.filter((host) => host.version === target).length;
  const count = hosts.length === 1 ? '1 host has' : `${hosts.length} hosts have`;
  const sentence =
    updated === hosts.length
      ? `${hosts.length === 1 ? 'The host has' : `All ${hosts.length} hosts have`} version ${target}.`
      : `${updated} of ${count} version ${target}.`;
  return { hosts, updated, sentence };
}

/** Marks a host that is not ready outside of its own update, because it delays the updates of other hosts. */
function withHealth(host: HostProgress, node: Node): HostProgress {
  const { level, text } = nodeState(node);
  if (level !== 'bad' || host.level === 'bad' || host.level === 'warn') return host;
  const problem = text === 'Unreachable' ? 'the host does not answer' : 'the host is not ready';
  return { ...host, level: 'bad', message: host.message === '' ? problem : `${problem}; ${host.message}` };
}

function progressOf(cluster: AnyObject, node: Node): HostProgress {
  const report = hostReportOf(node);
  const wanted = wantedUpdateOf(node);
  const reported = hostUpdateOf(node);
  const update = reported !== undefined && reported.id === wanted?.id ? reported : undefined;
  const host = {
    name: node.metadata?.name ?? '',
    version: report?.version ?? '',
    since: update?.since ?? '',
  };
  const target = desiredVersion(cluster);
  // An update's ID begins with the generation of the ClusterVersion. IDs with another generation belong to earlier
  // updates.
  const isCurrent = Number.parseInt(wanted?.id ?? '', 10) === numberAt(cluster, 1, 'metadata', 'generation');
  const underWay = update?.state === 'Fetching' || update?.state === 'Restarting';
  // After the update of another host has failed, this host waits until it is returned to the earlier release.
  const returns = isUpdating(cluster) && update?.state === 'Done' && wanted?.version !== target;
  if (update !== undefined && wanted !== undefined && ((isCurrent && !returns) || underWay)) {
    const faults = Object.entries(report?.probes ?? {}).filter(([, reason]) => reason !== '');
    return { ...host, ...phaseOf(node, wanted, update, host.version, faults) };
  }
  const name = host.name;
  const plain = { ...host, since: '' };
  if (host.version === target) return { ...plain, phase: 'up to date', level: 'good', message: '' };
  if (!isUpdating(cluster)) {
    const message = pausedHosts(cluster).includes(name)
      ? 'its pool is paused'
      : report === undefined
        ? 'the host has not reported its version'
        : 'the update was stopped, or the host was updated separately';
    return { ...plain, phase: 'not updated', level: 'muted', message };
  }
  const isRequested = isCurrent && wanted?.version === target;
  const message = isRequested ? 'the update is requested' : 'one host is updated after the other';
  return { ...plain, phase: 'waiting', level: 'muted', message };
}

type Phase = Pick<HostProgress, 'phase' | 'level' | 'message'>;

function phaseOf(
  node: Node,
  wanted: WantedUpdate,
  { state, message, version }: HostUpdate,
  running: string,
  faults: readonly (readonly [string, string])[],
): Phase {
  switch (state) {
    case 'Fetching':
      return wanted.drain === true && node.spec?.unschedulable === true
        ? { phase: 'draining', level: 'warn', message: 'pods are evicted before the update' }
        : { phase: 'preparing', level: 'warn', message: `${version} is fetched and verified, and the store is saved` };
    case 'Restarting':
      // A message in this state is the reason for a rollback.
      if (message !== '') return { phase: 'rolling back', level: 'bad', message };
      if (running !== wanted.version)
        return { phase: 'switching', level: 'warn', message: `the host process restarts with ${version}` };
      return {
        phase: 'trying',
        level: 'warn',
        message:
          faults.length === 0
            ? 'must stay healthy for a minute'
            : faults.map(([probe, reason]) => `${probe}: ${reason}`).join('; '),
      };
    case 'Done':
      return { phase: 'confirmed', level: 'good', message };
    default:
      // If the guard has rolled back, its message names the version that was tried. All other failures happen before
      // the switch.
      return { phase: message.startsWith(`${version} was `) ? 'rolled back' : 'given up', level: 'bad', message };
  }
}

/** Hosts of paused pools, which are listed in the message of a completed update. */
function pausedHosts(version: AnyObject): readonly string[] {
  const [, names = ''] = /; paused: (.+)$/.exec(conditionOf(version, 'Progressing')?.message ?? '') ?? [];
  return names.split(', ');
}

/** Whether an update is requested that can still be stopped. */
export const canStop = (version: AnyObject): boolean =>
  isUpdating(version) && textAt(version, 'spec', 'desiredUpdate', 'version') !== '';

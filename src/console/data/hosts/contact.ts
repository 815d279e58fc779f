/** Hosts that do not respond: the time of the last contact, and a suggested fix. */
import type { Lease } from '../../../api/generated/coordination/v1.ts';
import type { Node } from '../../../api/generated/core/v1.ts';
import { objectPath } from '../../../client/resource-path.ts';
import type { Api } from '../api/api.ts';
import { conditionOf, LEASES } from '../api/resources.ts';

export interface LostHost {
  readonly name: string;
  /** Time of the kubelet's last report; '' if it has never reported. */
  readonly lastContact: string;
  /** Message of the node's Ready condition. */
  readonly detail: string;
  readonly fix: string;
}

const LEASE_NAMESPACE = 'kube-node-lease';
/** Maximum number of leases that are read. */
const MAX_LEASES = 20;

const MASTER = /^node-role\.kubernetes\.io\/(?:master|control-plane)$/;

export const isMaster = ({ metadata }: Node): boolean =>
  Object.keys(metadata?.labels ?? {}).some((label) => MASTER.test(label));

/**
 * Whether the node controller or the gossip ring has declared the host dead. Usage and reports of such a host are
 * outdated.
 */
export const isLost = (node: Node): boolean => conditionOf(node, 'Ready')?.status === 'Unknown';

export const answering = (nodes: readonly Node[]): readonly Node[] => nodes.filter((node) => !isLost(node));

/** @param renewals Times of the last renewal of the nodes' leases. */
export function lostHosts(nodes: readonly Node[], renewals: ReadonlyMap<string, string>): readonly LostHost[] {
  return nodes.filter(isLost).map((node) => {
    const name = node.metadata?.name ?? '';
    const removal = isMaster(node)
      ? 'replace its member of the store (docs/runbooks/replace-member.md)'
      : `remove it with "kubectl delete node ${name}"`;
    return {
      name,
      lastContact: latest([renewals.get(name), heartbeatOf(node)]),
      detail: conditionOf(node, 'Ready')?.message ?? '',
      fix: `Check the power and the network of the host, then "systemctl status hyperedge" on it. It rejoins when it is up. If it does not return, ${removal}.`,
    };
  });
}

/**
 * Heartbeat in the node's status. The kubelet writes it only every five minutes, but renews its lease every ten
 * seconds.
 */
const heartbeatOf = ({ status }: Node): string | undefined =>
  status?.conditions?.find(({ type }) => type === 'Ready')?.lastHeartbeatTime;

/** Latest of the given times; '' if no time is valid. */
function latest(times: readonly (string | undefined)[]): string {
  const known = times.filter((time) => time !== undefined && !Number.isNaN(Date.parse(time)));
  return known.toSorted((a = '', b = '') => Date.parse(b) - Date.parse(a))[0] ?? '';
}

/** Renewal times of leases. Leases that are missing or that the user may not read are omitted. */
export async function readRenewals(
  api: Api,
  names: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const read = async (name: string): Promise<readonly [string, string] | undefined> => {
    const lease = await api.json<Lease>(objectPath(LEASES, name, LEASE_NAMESPACE), { signal }).catch(() => undefined);
    return lease?.spec?.renewTime === undefined ? undefined : [name, lease.spec.renewTime];
  };
  const found = await Promise.all(names.slice(0, MAX_LEASES).map(read));
  return new Map(found.filter((each) => each !== undefined));
}

/** Settings that are valid individually but contradict each other. */
import { type Network, parseNetwork, widthOf } from '../../base/addresses/networks.ts';
import { CodedError } from '../../base/errors.ts';
import type { Role } from './bootstrap.ts';

type Component = 'api' | 'kubelet' | 'controllers' | 'etcd' | 'etcdPeer' | 'balancer' | 'machineConfigServer';

interface Checked {
  readonly bootstrapFile: string;
  readonly joined: boolean;
  readonly roles: ReadonlySet<Role>;
  readonly network: { readonly clusterCidrs: readonly string[]; readonly serviceCidrs: readonly string[] };
  readonly ports: Readonly<Record<Component, number>>;
  /** Settings of an external store; undefined if the store runs on this host. */
  readonly storage: unknown;
}

/** Throws CodedError 'bad-config' if address ranges overlap, or if two components of this host have the same port. */
export function checkConflicts({ bootstrapFile, joined, network, ports, roles, storage }: Checked): void {
  // A joined host has the ranges of its cluster, which its bootstrap file cannot change.
  for (const cluster of joined ? [] : network.clusterCidrs) {
    const service = network.serviceCidrs.find((each) => overlap(parseNetwork(cluster), parseNetwork(each)));
    if (service === undefined) continue;
    throw new CodedError(
      'bad-config',
      `${bootstrapFile}: network.clusterCIDR: ${cluster} overlaps network.serviceCIDR ${service}; give separate ranges`,
    );
  }
  const used = new Map<number, string>();
  const names: Component[] = ['kubelet', 'balancer'];
  if (roles.has('master')) names.push('api', 'controllers', 'machineConfigServer');
  if (roles.has('etcd') && storage === undefined) names.push('etcd', 'etcdPeer');
  for (const name of names) {
    const other = used.get(ports[name]);
    if (other !== undefined)
      throw new CodedError(
        'bad-config',
        `${bootstrapFile}: ports.${name}: ${ports[name]} is also the port of ports.${other}; give different ports`,
      );
    used.set(ports[name], name);
  }
}

function overlap(a: Network | undefined, b: Network | undefined): boolean {
  if (a === undefined || b === undefined || a.family !== b.family) return false;
  const host = BigInt(widthOf(a.family) - Math.min(a.bits, b.bits));
  return a.base >> host === b.base >> host;
}

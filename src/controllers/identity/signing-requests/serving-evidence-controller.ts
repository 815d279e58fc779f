/** Collects the evidence that proves the names of kubelet serving certificates. */
import type { KubeObject, ResourceType } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { sshAddressOf } from '../../../openshift/machines/kinds/ssh-address.ts';
import type { Access, ControllerHandle } from '../../framework/framework.ts';
import type { ServingEvidence } from './serving-names.ts';

/** Access that a controller must declare to use `servingEvidence`. */
export const EVIDENCE = {
  reads: [resources.nodes, resources.endpoints],
  writes: [resources.serviceCidrs, resources.machines, resources.bareMetalHosts],
  uses: ['clusterFacts', 'router'],
} as const satisfies Access;

/**
 * Returns a function that collects evidence. Must be called while the controller is prepared. `source` is the address
 * that sent the request. If `isServing` is false, the evidence contains neither the inventory nor the ranges of
 * ServiceCIDRs.
 */
export function servingEvidence(
  handle: ControllerHandle,
): (source: string | undefined, isServing: boolean, nodeName: string) => Promise<ServingEvidence> {
  const nodes = handle.informer(resources.nodes);
  const endpoints = handle.informer(resources.endpoints, {
    namespace: 'default',
    fieldSelector: 'metadata.name=kubernetes',
  });
  const { clusterCidr, serviceCidr } = handle.options;
  const domains = [
    handle.use('clusterFacts')?.settings['clusterDomain'] ?? 'cluster.local',
    handle.use('router')?.domain,
  ].filter((domain) => domain !== undefined);

  /** Objects of a kind; empty when the server does not serve the kind, because it lacks the OpenShift groups. */
  async function all<T extends KubeObject>(type: ResourceType<T>): Promise<readonly T[]> {
    try {
      return (await handle.writer(type).list()).items;
    } catch (error) {
      if (isApiError(error, 'NotFound')) return [];
      throw error;
    }
  }

  /** Addresses under which the machine controllers connect to the node's host. */
  async function inventoryOf(nodeName: string): Promise<string[]> {
    const machines = (await all(resources.machines)).filter(({ status }) => status?.nodeRef?.name === nodeName);
    if (machines.length === 0) return [];
    const uids = machines.map(({ metadata }) => metadata?.uid);
    return (await all(resources.bareMetalHosts))
      .filter(({ spec }) => spec?.consumerRef?.uid !== undefined && uids.includes(spec.consumerRef.uid))
      .flatMap(({ spec }) => sshAddressOf(spec?.bmc?.address ?? '')?.host ?? []);
  }

  return async (source, isServing, nodeName) => {
    const ranges = isServing ? await all(resources.serviceCidrs) : [];
    const servers = endpoints.get('default/kubernetes')?.subsets ?? [];
    return {
      source,
      inventory: isServing ? await inventoryOf(nodeName) : [],
      nodes: nodes.list(),
      apiServers: servers.flatMap(({ addresses = [] }) => addresses.map(({ ip }) => ip)),
      serviceCidrs: [...serviceCidr.split(','), ...ranges.flatMap(({ spec }) => spec?.cidrs ?? [])],
      clusterCidrs: clusterCidr.split(','),
      domains,
    };
  };
}

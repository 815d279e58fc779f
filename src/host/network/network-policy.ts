/** Network policies of a host: their enforcement, and a gate that delays a new pod until its policies are applied. */
import type { NodeName } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { InformerFactory } from '../../client/index.ts';
import {
  type AttachedPod,
  createNetworkPolicies,
  type NetworkPolicies,
} from '../../network/policies/network-policies.ts';
import { createNftFilter } from '../../network/services/io/netfilter/index.ts';
import type { PodAttachments } from '../../runtime/oci/port.ts';
import { RuntimeError } from '../../runtime/port.ts';
import type { Settings } from '../config/settings.ts';
import { systemClock as clock } from '../process/process.ts';

/**
 * Gate between the pod network and the policies. It exists before the policies, because pods are attached before the
 * API server is available.
 */
export interface PolicyGate {
  /** Wraps a network so that `attach` resolves only after the policies apply to the pod's addresses. */
  guard(network: PodAttachments): PodAttachments;
  /** Starts to enforce policies. */
  open(settings: Settings, informers: InformerFactory, nodeName: NodeName, log: Log): void;
  /** Restores rules that other programs have removed, and replaces the tables in `damaged`. */
  verify(damaged: ReadonlySet<string>): Promise<void>;
  stop(options: { readonly keepRules: boolean }): Promise<void>;
}

export function createPolicyGate(): PolicyGate {
  let policies: NetworkPolicies | undefined;
  /** Pods that have addresses, by sandbox ID. */
  const attached = new Map<string, AttachedPod>();
  return {
    guard: (network) => ({
      ...(network.reserve === undefined ? {} : { reserve: network.reserve.bind(network) }),
      async attach(netnsPath, pod) {
        const { sandboxId, namespace, name } = pod;
        const given = await network.attach(netnsPath, pod);
        attached.set(sandboxId, { namespace, name, ips: given.ips });
        try {
          await policies?.admit(namespace, name, given.ips);
        } catch (error) {
          await this.detach(sandboxId);
          throw new RuntimeError('network', messageOf(error), { cause: error });
        }
        return given;
      },
      async detach(sandboxId) {
        await network.detach(sandboxId);
        const pod = attached.get(sandboxId);
        attached.delete(sandboxId);
        // The pod's next sandbox may already exist, so its policies are kept.
        const isReplaced = [...attached.values()].some((each) => sameName(each, pod));
        if (pod !== undefined && !isReplaced) policies?.release(pod.namespace, pod.name);
      },
      retain: (alive) => network.retain(alive),
    }),
    open({ network }, informers, nodeName, log) {
      policies = createNetworkPolicies({
        informers,
        packetFilter: createNftFilter({ serviceRouteLink: network.bridge, log: log.named('nft') }),
        log: log.named('network-policy'),
        clock,
        config: { nodeName, table: `${network.nftTable}-policy` },
      });
      policies.start([...attached.values()]).catch((error: unknown) => {
        log.error('network policies are not enforced', { error: messageOf(error) });
      });
    },
    verify: async (damaged) => policies?.verify(damaged),
    stop: async (options) => policies?.stop(options),
  };
}

const sameName = (left: AttachedPod, right: AttachedPod | undefined): boolean =>
  left.namespace === right?.namespace && left.name === right.name;

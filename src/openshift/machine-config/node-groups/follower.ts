/**
 * Runs on each host: watches the ConfigMap of the host's node group, and claims the group in an annotation of the Node.
 */
import type { ConfigMap, Node } from '../../../api/generated/core/v1.ts';
import { GROUP_BY_POOLS, GROUP_CLAIM } from '../../../api/kinds/nodes/nodes/own-labels.ts';
import { resources } from '../../../api/resources.ts';
import { startApplyLoop } from '../../../base/concurrency/apply-loop.ts';
import type { Log } from '../../../base/log.ts';
import type { Clock } from '../../../base/time/clock.ts';
import type { ApiClient, InformerFactory } from '../../../client/types.ts';
import { GROUP_KEY, GROUP_NAMESPACE } from './default-groups.ts';

export interface GroupFollowerOptions {
  readonly informers: InformerFactory;
  /** Client with the node's own credentials. */
  readonly client: ApiClient;
  readonly nodeName: string;
  /** Name of the node group's ConfigMap, from the variable BOOTSTRAP_CONFIG_NAME in the sysconfig file. */
  readonly group: string;
  /**
   * Called with the NodeConfig of the group at the start and after each change. If `byPools` is true, pools apply the
   * settings that a KubeletConfig supports, so the host must not apply them.
   */
  readonly onConfig: (text: string, byPools: boolean) => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** Starts to follow the group and claims it for the Node. Returns a function that stops this. */
export function followNodeGroup(options: GroupFollowerOptions): () => void {
  const { informers, client, nodeName, group, clock, log } = options;
  const groups = informers.informer(resources.configMaps, {
    namespace: GROUP_NAMESPACE,
    fieldSelector: `metadata.name=${group}`,
  });
  const nodes = informers.informer(resources.nodes, { fieldSelector: `metadata.name=${nodeName}` });
  const isClaimed = ({ metadata }: Node): boolean => metadata?.annotations?.[GROUP_CLAIM] === group;
  const take = ({ data, metadata }: ConfigMap): void => {
    const text = data?.[GROUP_KEY];
    if (text === undefined) log.warn('node group without configuration', { group, key: GROUP_KEY });
    else options.onConfig(text, metadata?.annotations?.[GROUP_BY_POOLS] !== undefined);
  };
  const claims = startApplyLoop({
    apply: async () => {
      const node = nodes.get(nodeName);
      if (node === undefined || isClaimed(node)) return;
      const metadata = { annotations: { [GROUP_CLAIM]: group } };
      await client.resource(resources.nodes).patch(nodeName, undefined, 'merge', { metadata });
    },
    failure: 'node group not claimed',
    clock,
    log,
  });
  const claim = (node: Node): void => {
    if (!isClaimed(node)) claims.touch();
  };
  const closers = [
    groups.onChange({
      added: take,
      updated: take,
      // The last configuration of the group stays in effect.
      deleted: () => log.warn('node group deleted', { group }),
    }),
    nodes.onChange({ added: claim, updated: claim }),
  ];
  for (const informer of [groups, nodes]) informer.start();
  return () => {
    for (const close of closers) close();
    void claims.stop();
  };
}

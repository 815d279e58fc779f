/** Drains this host's own Node before an update, if the update requests it, and uncordons the Node afterwards. */
import type { Node, Pod } from '../../api/generated/core/v1.ts';
import { resources } from '../../api/resources.ts';
import { CodedError, ignore } from '../../base/errors.ts';
import type { Clock } from '../../base/time/clock.ts';
import type { ApiClient } from '../../client/types.ts';

/** Annotation of a Node that an update has cordoned, to distinguish it from a cordon by an administrator. */
const CORDONED = 'hyperedge.dev/cordoned-by-update';
const POLL_MS = 1_000;
const LIMIT_MS = 300_000;
const MIRROR = 'kubernetes.io/config.mirror';

export interface DrainedHost {
  readonly nodeName: string;
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly stopped: () => boolean;
}

/** Cordons the Node and evicts its pods. Throws CodedError 'refused' if pods are left after five minutes. */
export async function drainOwnNode(host: DrainedHost, node: Node): Promise<void> {
  const { nodeName, client, clock } = host;
  if (node.spec?.unschedulable !== true) {
    const patch = { metadata: { annotations: { [CORDONED]: 'true' } }, spec: { unschedulable: true } };
    await client.resource(resources.nodes).patch(nodeName, undefined, 'merge', patch);
  }
  const pods = client.resource(resources.pods);
  const beganMs = clock.monotonicMs();
  for (;;) {
    const left = (await pods.list({ fieldSelector: `spec.nodeName=${nodeName}` })).items.filter(mustGo);
    if (left.length === 0 || host.stopped()) return;
    if (clock.monotonicMs() - beganMs > LIMIT_MS) {
      const names = left.map(({ metadata }) => `${metadata?.namespace}/${metadata?.name}`);
      throw new CodedError(
        'refused',
        `not drained after ${LIMIT_MS / 60_000} minutes: ${names.slice(0, 3).join(', ')}`,
      );
    }
    for (const { metadata } of left) {
      const { name = '', namespace = '', deletionTimestamp } = metadata ?? {};
      if (deletionTimestamp !== undefined) continue;
      const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
      // 429: a PodDisruptionBudget currently rejects the eviction.
      await pods
        .createSubresource(name, namespace, 'eviction', eviction)
        .catch(ignore('the loop evicts the pods that are left again'));
    }
    await new Promise<void>((resolve) => {
      clock.setTimer(POLL_MS, resolve);
    });
  }
}

export async function uncordonOwnNode({ nodeName, client }: DrainedHost, node: Node | undefined): Promise<void> {
  if (node?.metadata?.annotations?.[CORDONED] === undefined) return;
  const patch = { metadata: { annotations: { [CORDONED]: null } }, spec: { unschedulable: null } };
  await client.resource(resources.nodes).patch(nodeName, undefined, 'merge', patch);
}

/**
 * Whether a pod must be evicted. As with kubectl drain --ignore-daemonsets, mirror pods stay because they belong to the
 * host, and pods of a DaemonSet stay because the DaemonSet would create them again.
 */
function mustGo({ metadata, status }: Pod): boolean {
  if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return false;
  if (metadata?.annotations?.[MIRROR] !== undefined) return false;
  return !(metadata?.ownerReferences ?? []).some(({ kind }) => kind === 'DaemonSet');
}

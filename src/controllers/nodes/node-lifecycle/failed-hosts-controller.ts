/**
 * Marks the nodes of hosts that the gossip ring has declared dead as not ready. Runs on each master independent of
 * leadership, because the failed host may have held the controllers' lease. Plan in
 * controllers/nodes/node-lifecycle/gossip.ts.
 */
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import type { Clock } from '../../../base/clock.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { ApiClient, EventRecorder, InformerFactory } from '../../../client/types.ts';
import { failedBefore, newlyFailed, planFailedNode, type RingMemberState } from './gossip.ts';
import type { RingView } from './ring-port.ts';

export interface FailedHostsDeps {
  readonly ring: Pick<RingView, 'follow' | 'stop'>;
  readonly client: ApiClient;
  readonly informers: InformerFactory;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Attempts of a write. They last some seconds, because the store and the API server may have failed together with the
 * host.
 */
const ATTEMPTS = 20;
const RETRY_MS = 250;
/** Wait for a renewal of the lease, longer than the interval at which a kubelet renews it. */
const LEASE_RENEWAL_MS = 12_000;
const LEASE_NAMESPACE = 'kube-node-lease';

export function followFailedHosts(deps: FailedHostsDeps): { stop(): void } {
  const { clock, log, recorder } = deps;
  const nodes = deps.informers.informer(resources.nodes);
  const leases = deps.informers.informer(resources.leases, { namespace: LEASE_NAMESPACE });
  const client = deps.client.resource(resources.nodes);
  let stopped = false;
  let known: readonly RingMemberState[] = [];

  const renewTimeOf = (name: string): string | undefined => leases.get(`${LEASE_NAMESPACE}/${name}`)?.spec?.renewTime;
  const isDead = (name: string): boolean => known.some((each) => each.name === name && each.state === 'dead');

  const mark = async (name: string, renewTime: string | undefined, attempt: number): Promise<void> => {
    const node = nodes.get(name);
    // A lease renewed after the host was declared dead shows that the kubelet runs.
    if (stopped || node === undefined || !isDead(name) || renewTimeOf(name) !== renewTime) return;
    const conditions = planFailedNode(node, clock.nowMs());
    if (conditions === undefined) return;
    try {
      const { resourceVersion } = node.metadata ?? {};
      const patch = { metadata: { resourceVersion }, status: { conditions } };
      await client.patch(name, undefined, 'strategic', patch, { subresource: 'status' });
      log.warn('host failed, node marked not ready', { node: name });
      recorder.event(node, 'Normal', 'NodeNotReady', `Node ${name} status is now: NodeNotReady`, {
        component: 'node-controller',
      });
    } catch (error) {
      if (isApiError(error, 'NotFound')) return;
      log.v(2, 'node of a failed host not marked; retrying', { node: name, error: messageOf(error) });
      if (attempt < ATTEMPTS) clock.setTimer(RETRY_MS, () => void mark(name, renewTime, attempt + 1));
    }
  };

  deps.ring.follow((members) => {
    const failed = newlyFailed(known, members);
    const earlier = failedBefore(known, members);
    known = members;
    for (const name of failed) void mark(name, renewTimeOf(name), 1);
    // A host that was dead before the start of this process may run without gossip. Its node is marked only if its
    // lease is not renewed in the meantime.
    for (const name of earlier) {
      const renewTime = renewTimeOf(name);
      clock.setTimer(LEASE_RENEWAL_MS, () => void mark(name, renewTime ?? renewTimeOf(name), 1));
    }
  });
  return {
    stop: () => {
      stopped = true;
      deps.ring.stop();
    },
  };
}

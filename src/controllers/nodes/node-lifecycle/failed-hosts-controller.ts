/**
 * Marks the nodes of hosts that the gossip ring has declared dead as not ready. Runs on each master independent of
 * leadership, because the failed host may have held the controllers' lease. The planner is in `gossip.ts`.
 */
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Clock } from '../../../base/time/clock.ts';
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
/**
 * Time for which a member must stay dead. Each holder of the ring's key can report the death of another member; a
 * running member refutes the report within this time.
 */
const REFUTATION_MS = 1_000;
const LEASE_NAMESPACE = 'kube-node-lease';

/** Death of a member, until the ring reports the member in another state. */
interface Death {
  readonly name: string;
  /** A renewal of the lease was seen after the report, and the wait for a further renewal has begun. */
  isRenewed: boolean;
}

export function followFailedHosts(deps: FailedHostsDeps): { stop(): void } {
  const { clock, log, recorder } = deps;
  const nodes = deps.informers.informer(resources.nodes);
  const leases = deps.informers.informer(resources.leases, { namespace: LEASE_NAMESPACE });
  const client = deps.client.resource(resources.nodes);
  let stopped = false;
  let known: readonly RingMemberState[] = [];
  const deaths = new Map<string, Death>();

  const renewTimeOf = (name: string): string | undefined => leases.get(`${LEASE_NAMESPACE}/${name}`)?.spec?.renewTime;
  const markLater = (death: Death, delayMs: number, renewTime: string | undefined, attempt = 1): void => {
    clock.setTimer(delayMs, () => void mark(death, renewTime, attempt));
  };

  const mark = async (death: Death, renewTime: string | undefined, attempt: number): Promise<void> => {
    const { name } = death;
    const node = nodes.get(name);
    if (stopped || node === undefined || deaths.get(name) !== death) return;
    const renewed = renewTimeOf(name);
    if (renewed !== renewTime) {
      // The kubelet may have sent this renewal before the host failed. Only a further renewal shows that it runs.
      if (!death.isRenewed) markLater(death, LEASE_RENEWAL_MS, renewed);
      death.isRenewed = true;
      return;
    }
    const conditions = planFailedNode(node, clock.nowMs());
    if (conditions === undefined) return;
    try {
      const { resourceVersion } = node.metadata ?? {};
      const patch = { metadata: { resourceVersion }, status: { conditions } };
      await client.patch(name, undefined, 'strategic', patch, { subresource: 'status' });
      log.warn('host failed; node marked as not ready', { node: name });
      recorder.event(node, 'Normal', 'NodeNotReady', `Node ${name} status is now: NodeNotReady`, {
        component: 'node-controller',
      });
    } catch (error) {
      if (isApiError(error, 'NotFound')) return;
      log.v(2, 'node of a failed host not marked; retrying', { node: name, error: messageOf(error) });
      if (attempt < ATTEMPTS) markLater(death, RETRY_MS, renewTime, attempt + 1);
    }
  };

  deps.ring.follow((members) => {
    const failed = newlyFailed(known, members);
    const earlier = failedBefore(known, members);
    known = members;
    const dead = new Set(members.flatMap(({ name, state }) => (state === 'dead' ? [name] : [])));
    for (const name of deaths.keys()) if (!dead.has(name)) deaths.delete(name);
    const begin = (name: string): Death => {
      const death = { name, isRenewed: false };
      deaths.set(name, death);
      return death;
    };
    for (const name of failed) markLater(begin(name), REFUTATION_MS, renewTimeOf(name));
    // A host that was dead before the start of this process may run without gossip. Its node is marked only if its
    // lease is not renewed in the meantime.
    for (const name of earlier) {
      const renewTime = renewTimeOf(name);
      const death = begin(name);
      clock.setTimer(LEASE_RENEWAL_MS, () => void mark(death, renewTime ?? renewTimeOf(name), 1));
    }
  });
  return {
    stop: () => {
      stopped = true;
      deps.ring.stop();
    },
  };
}

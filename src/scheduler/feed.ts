/** Updates the cluster state and the queue of the scheduler from the informers. */

import { mayBeDevices } from '../api/devices/extended-resources.ts';
import type { Node, PersistentVolumeClaim, Pod } from '../api/generated/core/v1.ts';
import { heldRequests, sameAmounts } from '../api/podspec/scheduling/node-resources.ts';
import { type PodInfo, podInfoOf } from '../api/podspec/scheduling/pod-info.ts';
import { toNodeName, toUid } from '../base/brand.ts';
import type { ClusterEvent } from './core/hints.ts';
import { podGroupKey } from './core/pod-group.ts';
import type { OptionalSources } from './data-sources.ts';
import type { EpochState } from './epoch-state.ts';
import {
  differs,
  hasGates,
  isNodeRelevant,
  isPlaced,
  isPodRelevant,
  isTerminal,
  nodeEvents,
} from './relevant-changes.ts';

export class ClusterFeed {
  readonly #state: EpochState;
  readonly #unsubscribes: (() => void)[] = [];

  constructor(state: EpochState) {
    this.#state = state;
  }

  start(): void {
    const { cluster, sources } = this.#state;
    // Nodes come first, so that pods are assigned to them immediately. All bound pods are added before the first
    // decision, because decisions start only after this function has returned.
    this.#unsubscribes.push(
      sources.nodes.onChange({
        added: (node) => {
          cluster.setNode(node);
          this.#happened({ kind: 'NodeAdded', node });
        },
        updated: (node, old) => this.#nodeChanged(node, old),
        deleted: (node) => {
          cluster.removeNode(toNodeName(node.metadata?.name));
          this.#happened({ kind: 'NodeRemoved' });
        },
      }),
      sources.pods.onChange({
        added: (pod) => this.#podAdded(pod),
        updated: (pod, old) => this.#podChanged(pod, old),
        deleted: (pod) => this.#podDeleted(pod),
      }),
      sources.namespaces.onChange({
        added: () => this.#namespaceChanged(),
        updated: (namespace, old) => {
          if (differs(namespace.metadata?.labels, old.metadata?.labels)) this.#namespaceChanged();
        },
      }),
    );
  }

  released(pod: PodInfo): void {
    this.#happened({ kind: 'PodLeft', pod });
    if (pod.claims.length > 0) this.#happened({ kind: 'VolumesChanged' });
    if (usesDevices(pod)) this.#happened({ kind: 'DevicesChanged' });
  }

  /** Called when devices or device claims have changed. */
  devicesChanged(): void {
    this.#happened({ kind: 'DevicesChanged' });
  }

  addOptional({ claims, volumes, classes, csiNodes, csiDrivers, capacities }: OptionalSources): void {
    const on = (event: ClusterEvent) => {
      const changed = (): void => this.#happened(event);
      return { added: changed, updated: changed, deleted: changed };
    };
    const claimChanged = (claim: PersistentVolumeClaim): void => this.#happened({ kind: 'ClaimChanged', claim });
    if (claims !== undefined) {
      this.#unsubscribes.push(claims.onChange({ added: claimChanged, updated: claimChanged, deleted: claimChanged }));
    }
    for (const informer of [volumes, classes, csiDrivers, capacities]) {
      if (informer !== undefined) this.#unsubscribes.push(informer.onChange(on({ kind: 'VolumesChanged' })));
    }
    if (csiNodes !== undefined) this.#unsubscribes.push(csiNodes.onChange(on({ kind: 'CSINodeChanged' })));
  }

  addPodGroups({ podGroups }: Pick<OptionalSources, 'podGroups'>): void {
    if (podGroups === undefined) return;
    const changed = ({ metadata }: { metadata?: { namespace?: string; name?: string } }): void =>
      this.#happened({ kind: 'PodGroupChanged', key: `${metadata?.namespace ?? ''}/${metadata?.name ?? ''}` });
    this.#unsubscribes.push(podGroups.onChange({ added: changed, updated: changed, deleted: changed }));
  }

  stop(): void {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
  }

  #namespaceChanged(): void {
    this.#state.cluster.namespaceChanged();
    this.#happened({ kind: 'NamespaceChanged' });
  }

  #nodeChanged(node: Node, old: Node): void {
    if (!isNodeRelevant(node, old)) return;
    this.#state.cluster.setNode(node);
    for (const event of nodeEvents(node, old)) this.#happened(event);
  }

  #podAdded(pod: Pod): void {
    if (isTerminal(pod)) return;
    this.#state.members.set(pod);
    if (!isPlaced(pod)) {
      this.#enqueue(pod);
      return;
    }
    const held = this.#state.cluster.holds(toUid(pod.metadata?.uid));
    const info = this.#state.cluster.setPod(pod);
    this.#state.queue.remove(info.uid);
    this.#happened({ kind: 'PodPlaced', pod: info });
    if (held.some((node) => node !== pod.spec?.nodeName)) this.released(info);
  }

  #podChanged(pod: Pod, old: Pod): void {
    if (isTerminal(pod)) {
      if (!isTerminal(old)) this.#podDeleted(pod);
      return;
    }
    this.#state.members.set(pod);
    if (!isPlaced(pod)) {
      this.#nominationChanged(pod, old);
      if (pod.metadata?.deletionTimestamp !== undefined) this.#pendingPodDeleted(pod);
      else if (isPodRelevant(pod, old)) this.#enqueue(pod);
      return;
    }
    if (!isPlaced(old)) {
      this.#podAdded(pod);
      return;
    }
    const { cluster } = this.#state;
    const isRelabelled = differs(pod.metadata?.labels, old.metadata?.labels);
    const isLeaving = pod.metadata?.deletionTimestamp !== old.metadata?.deletionTimestamp;
    const before = cluster.placedPod(toUid(pod.metadata?.uid))?.requests ?? heldRequests(old);
    const info = cluster.setPod(pod);
    const isResized = !sameAmounts(info.requests, before);
    if (isRelabelled || isLeaving) this.#happened({ kind: 'PodLabelsChanged', pod: info });
    if (isResized) this.#happened({ kind: 'PodLeft', pod: info });
  }

  #podDeleted(pod: Pod): void {
    const { cluster, queue, members } = this.#state;
    const uid = toUid(pod.metadata?.uid);
    const heldRoom = cluster.removePod(uid);
    queue.remove(uid);
    members.remove(uid);
    if (isPlaced(pod)) this.#happened({ kind: 'PodLeft', pod: podInfoOf(pod) });
    else if (heldRoom) this.released(podInfoOf(pod));
  }

  /**
   * Removes a pending pod that is being deleted from the queue, and clears its nomination. Such a pod is never bound.
   */
  #pendingPodDeleted(pod: Pod): void {
    const { cluster, queue } = this.#state;
    const uid = toUid(pod.metadata?.uid);
    queue.remove(uid);
    if (cluster.clearNomination(uid)) this.released(podInfoOf(pod));
  }

  /** Applies nominations by other components, which may nominate a node or withdraw a nomination. */
  #nominationChanged(pod: Pod, old: Pod): void {
    const { cluster } = this.#state;
    const uid = toUid(pod.metadata?.uid);
    const [now, before] = [pod, old].map(({ status }) => toNodeName(status?.nominatedNodeName));
    if (now === undefined || now === before) return;
    const info = podInfoOf(pod);
    const known = cluster.nominatedNode(uid);
    // A nomination that the scheduler is still writing is newer than the pod in the informer.
    if (now === '' && known === before) {
      cluster.clearNomination(uid);
      this.released(info);
    } else if (now !== '' && known === undefined && this.#state.profileOf(info) !== undefined) {
      cluster.nominate(info, now);
    }
  }

  #enqueue(pod: Pod): void {
    const { cluster, queue, members } = this.#state;
    if (pod.metadata?.deletionTimestamp !== undefined || hasGates(pod)) return;
    const uid = toUid(pod.metadata?.uid);
    if (cluster.isAssumed(uid)) return;
    const info = podInfoOf(pod);
    if (this.#state.profileOf(info) === undefined) return;
    const nominated = toNodeName(pod.status?.nominatedNodeName);
    if (nominated !== '') cluster.nominate(info, nominated);
    queue.add(info, this.#state.nowMs());
    const key = podGroupKey(pod);
    // The new member may complete its group.
    if (key !== undefined && members.of(key).size > 1) this.#happened({ kind: 'PodGroupChanged', key });
    this.#state.pump();
  }

  #happened(event: ClusterEvent): void {
    if (this.#state.queue.onEvent(event) > 0) this.#state.pump();
  }
}

const usesDevices = ({ pod, requests }: PodInfo): boolean =>
  (pod.spec?.resourceClaims?.length ?? 0) > 0 || [...requests.keys()].some(mayBeDevices);

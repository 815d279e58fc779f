/** Binds the claims of a pod on its node, before the pod itself is bound. */
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from '../api/generated/core/v1.ts';
import type { PodInfo } from '../api/podspec/scheduling/pod-info.ts';
import { resources } from '../api/resources.ts';
import {
  annotationOf,
  BOUND_BY_CONTROLLER,
  isFullyBound,
  SELECTED_NODE,
  withAnnotations,
} from '../api/volumes/binding.ts';
import { isReachableFrom } from '../api/volumes/match.ts';
import { claimNames } from '../api/volumes/pod-claims.ts';
import type { Informer } from '../client/types.ts';
import type { ClusterView } from './core/cluster.ts';
import { type Rejection, rejectUnresolvable } from './core/filters/filter.ts';
import type { NodeInfo } from './core/node-info.ts';
import { unboundVolumesOn, type VolumesOnNode, volumesOfPod } from './core/volumes/pod-volumes.ts';
import type { SchedulerDeps } from './deps.ts';
import type { BindingPlugin } from './plugins.ts';
import { Waits } from './waits.ts';

export interface VolumeBinderDeps extends SchedulerDeps {
  /** Returns the timeout for binding volumes in the profile of the pod. */
  readonly bindTimeoutSeconds: (pod: PodInfo) => number;
}

export interface VolumeSources {
  readonly pods: Informer<Pod>;
  readonly claims: Informer<PersistentVolumeClaim>;
  readonly volumes: Informer<PersistentVolume>;
}

export class VolumeBinder implements BindingPlugin {
  readonly #deps: VolumeBinderDeps;
  readonly #sources: VolumeSources;
  /** Plans to bind claims on the selected node, by UID of the pod. */
  readonly #plans = new Map<string, VolumesOnNode>();
  /** Names of the volumes that plans use. */
  readonly #reserved = new Set<string>();
  readonly #waits: Waits;
  readonly #unsubscribes: (() => void)[];

  constructor(deps: VolumeBinderDeps, sources: VolumeSources) {
    this.#deps = deps;
    this.#sources = sources;
    this.#waits = new Waits(deps.clock);
    const { changed } = this.#waits;
    this.#unsubscribes = [
      sources.claims.onChange({ updated: changed, deleted: changed }),
      sources.volumes.onChange({ added: changed }),
      sources.pods.onChange({ deleted: changed }),
    ];
  }

  stop(): void {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    this.#waits.stop();
  }

  /** Whether a plan of another pod uses the volume. */
  isReserved(volume: string): boolean {
    return this.#reserved.has(volume);
  }

  reserve(pod: PodInfo, node: NodeInfo, view: ClusterView): Rejection | undefined {
    const unbound = volumesOfPod(pod.pod, view.volumes)?.unbound ?? [];
    if (unbound.length === 0) return undefined;
    const plan = unboundVolumesOn(node.node, unbound, view.volumes);
    if (typeof plan === 'string') return rejectUnresolvable('VolumeBinding', plan);
    this.#plans.set(pod.uid, plan);
    for (const { volume } of plan.reserve) this.#reserved.add(volume.metadata?.name ?? '');
    return undefined;
  }

  unreserve({ uid }: PodInfo): void {
    for (const { volume } of this.#plans.get(uid)?.reserve ?? []) this.#reserved.delete(volume.metadata?.name ?? '');
    this.#plans.delete(uid);
  }

  /**
   * Returns undefined if no claims must be bound. Otherwise resolves when all claims are bound. Rejects if that is
   * impossible on this node, if the pod is deleted, or after `bindTimeoutSeconds`.
   */
  preBind(info: PodInfo, node: Node): Promise<void> | undefined {
    const plan = this.#plans.get(info.uid);
    return plan === undefined ? undefined : this.#bind(info, node, plan).finally(() => this.unreserve(info));
  }

  async #bind(info: PodInfo, node: Node, plan: VolumesOnNode): Promise<void> {
    const { client } = this.#deps;
    for (const { claim, volume } of plan.reserve) {
      const { name = '', namespace = '', uid = '' } = claim.metadata ?? {};
      const claimRef = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid };
      const reserved: PersistentVolume = { ...volume, spec: { ...volume.spec, claimRef } };
      const isChosen = volume.spec?.claimRef === undefined;
      await client
        .resource(resources.persistentVolumes)
        .update(isChosen ? withAnnotations(reserved, { [BOUND_BY_CONTROLLER]: 'yes' }) : reserved);
    }
    const nodeName = node.metadata?.name ?? '';
    for (const claim of plan.provision) {
      if (annotationOf(claim, SELECTED_NODE) === nodeName) continue;
      const selected = withAnnotations(claim, { [SELECTED_NODE]: nodeName });
      await client.resource(resources.persistentVolumeClaims).update(selected);
    }
    await this.#allBound(info, node, new Set(plan.provision.map(({ metadata }) => metadata?.name ?? '')));
  }

  #allBound(info: PodInfo, node: Node, provisioned: ReadonlySet<string>): Promise<void> {
    /**
     * Claims for which the informer has shown the annotation with the selected node. If the annotation is removed
     * later, the provisioner has rejected the node.
     */
    const selected = new Set<string>();
    const seconds = this.#deps.bindTimeoutSeconds(info);
    return this.#waits.until(
      () => this.#isBound(info, node, provisioned, selected),
      seconds * 1_000,
      `binding volumes: claims of the pod are not bound after ${seconds}s`,
    );
  }

  #isBound(info: PodInfo, node: Node, provisioned: ReadonlySet<string>, selected: Set<string>): boolean {
    const { pods, claims, volumes } = this.#sources;
    if (pods.get(info.key)?.metadata?.uid !== info.uid) throw new Error(`pod ${info.key} is deleted`);
    let all = true;
    for (const name of claimNames(info.pod)) {
      const claim = claims.get(`${info.namespace}/${name}`);
      if (claim === undefined || claim.metadata?.deletionTimestamp !== undefined) {
        throw new Error(`binding volumes: persistentvolumeclaim "${name}" is deleted`);
      }
      if (isFullyBound(claim)) {
        const volume = volumes.get(claim.spec?.volumeName ?? '');
        if (volume === undefined) all = false;
        else if (!isReachableFrom(volume, node)) {
          throw new Error(`binding volumes: node affinity of volume "${volume.metadata?.name}" excludes the node`);
        }
        continue;
      }
      all = false;
      if (!provisioned.has(name)) continue;
      if (annotationOf(claim, SELECTED_NODE) !== undefined) selected.add(name);
      else if (selected.has(name)) throw new Error(`binding volumes: provisioning failed for PVC "${name}"`);
    }
    return all;
  }
}

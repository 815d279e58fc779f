/** Volumes that pods on nodes need. Source: pkg/controller/volume/attachdetach/cache desired_state_of_world.go. */
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from '../../../api/generated/core/v1.ts';
import type { CSIDriver } from '../../../api/generated/storage/v1.ts';
import { resources } from '../../../api/resources.ts';
import {
  isForOneNode,
  isInlineForOneNode,
  uniqueInlineName,
  uniqueInlineNames,
  uniqueNameOf,
} from '../../../api/volumes/attachment.ts';
import { isFullyBound } from '../../../api/volumes/binding.ts';
import { claimNames } from '../../../api/volumes/pod-claims.ts';
import { toNodeName } from '../../../base/brand.ts';
import type { Informer } from '../../../client/types.ts';
import type { ControllerHandle } from '../../framework/framework.ts';
import { indexByClaim, podsWithClaim } from '../../framework/owner-indices.ts';
import type { VolumeView } from './plan.ts';

export interface VolumeNeed extends Pick<VolumeView, 'name' | 'isForOneNode' | 'wanted'> {
  /** Name of the PersistentVolume; '' when no pod uses the volume through a claim. */
  readonly persistentVolumeName: string;
}

export class VolumeNeeds {
  readonly #pods: Informer<Pod>;
  readonly #nodes: Informer<Node>;
  readonly #volumes: Informer<PersistentVolume>;
  readonly #claims: Informer<PersistentVolumeClaim>;
  readonly #drivers: Informer<CSIDriver>;

  constructor(handle: ControllerHandle) {
    this.#pods = handle.informer(resources.pods);
    this.#nodes = handle.informer(resources.nodes);
    this.#volumes = handle.informer(resources.persistentVolumes);
    this.#claims = handle.informer(resources.persistentVolumeClaims);
    this.#drivers = handle.informer(resources.csiDrivers);
    indexByClaim(this.#pods);
    handle.addIndex(this.#pods, 'inline-volume', uniqueInlineNames);
    handle.addIndex(this.#volumes, 'unique-name', ({ spec }) => [uniqueNameOf(spec ?? {}) ?? []].flat());
  }

  /** Unique names of a pod's volumes that may need an attachment. */
  keysOf(pod: Pod): string[] {
    const ofClaims = claimNames(pod).flatMap((name) => {
      const volume = this.#volumeOfClaim(`${pod.metadata?.namespace ?? ''}/${name}`);
      return volume === undefined ? [] : (uniqueNameOf(volume.spec ?? {}) ?? []);
    });
    return [...ofClaims, ...uniqueInlineNames(pod)];
  }

  needOf(key: string): VolumeNeed {
    const users = new Map<string, Pod>();
    const names: string[] = [];
    let forOneNode = false;
    const add = (name: string, isExclusive: boolean, found: readonly Pod[]): void => {
      const active = found.filter((pod) => (pod.spec?.nodeName ?? '') !== '' && !isFinished(pod));
      if (active.length === 0) return;
      names.push(name);
      forOneNode ||= isExclusive;
      for (const pod of active) users.set(pod.metadata?.uid ?? '', pod);
    };
    for (const volume of this.#volumes.byIndex('unique-name', key)) {
      const { namespace = '', name = '' } = volume.spec?.claimRef ?? {};
      const claim = `${namespace}/${name}`;
      const isBound = this.#volumeOfClaim(claim)?.metadata?.name === volume.metadata?.name;
      if (!isBound || !this.#isAttached(volume)) continue;
      add(volume.metadata?.name ?? '', isForOneNode(volume), podsWithClaim(this.#pods, claim));
    }
    const [persistentVolumeName = ''] = names;
    for (const pod of this.#pods.byIndex('inline-volume', key)) {
      const inline = pod.spec?.volumes?.filter((each) => uniqueInlineName(each) === key) ?? [];
      add(inline[0]?.name ?? '', inline.some(isInlineForOneNode), [pod]);
    }
    const byNode = Map.groupBy([...users.values()].sort(byAge), ({ spec }) => toNodeName(spec?.nodeName));
    const wanted = [...byNode].map(([nodeName, pods]) => {
      return { nodeName, pods, exists: this.#nodes.get(nodeName) !== undefined };
    });
    return { name: names[0] ?? '', persistentVolumeName, isForOneNode: forOneNode, wanted };
  }

  #volumeOfClaim(key: string): PersistentVolume | undefined {
    const claim = this.#claims.get(key);
    return claim === undefined || !isFullyBound(claim) ? undefined : this.#volumes.get(claim.spec?.volumeName ?? '');
  }

  #isAttached({ spec }: PersistentVolume): boolean {
    return spec?.csi === undefined || this.#drivers.get(spec.csi.driver)?.spec.attachRequired !== false;
  }
}

const isFinished = ({ status }: Pod): boolean => status?.phase === 'Succeeded' || status?.phase === 'Failed';

function byAge(a: Pod, b: Pod): number {
  const [first, second] = [a, b].map(({ metadata }) => `${metadata?.creationTimestamp ?? ''} ${metadata?.uid ?? ''}`);
  return (first ?? '') < (second ?? '') ? -1 : 1;
}

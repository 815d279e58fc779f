/** Volumes that need a driver, a tool or a claim, selected by their source or by their record. */
import type { Pod, Volume } from '../../api/generated/core/v1.ts';
import { Turns } from '../../base/concurrency/keyed-turns.ts';
import type { ApiClient } from '../../client/types.ts';
import type { ClaimVolumes } from './claims.ts';
import { claimNameOf } from './claims.ts';
import type { CsiVolumes } from './csi/volumes.ts';
import { type ImageVolumes, imageSourceOf } from './image-volumes.ts';
import type { LocalVolumes } from './local-volumes.ts';
import type { NetworkVolumes } from './network-volumes.ts';
import type { MountRecord, MountRecords, PlainMount } from './records.ts';
import type { VolumeRequest } from './request.ts';

export interface VolumePluginsOptions {
  readonly claims: ClaimVolumes;
  readonly records: MountRecords;
  readonly csi: CsiVolumes;
  readonly local: LocalVolumes;
  readonly network: NetworkVolumes;
  readonly images: ImageVolumes;
  /** Parts that read the API, beside the claims. */
  readonly connected: readonly { connect(client: ApiClient): void }[];
  /** Whether the record's path exists and needs no call. */
  readonly isReady: (record: MountRecord) => Promise<boolean>;
}

export class VolumePlugins {
  readonly #options: VolumePluginsOptions;
  /** Serializes set-up by PersistentVolume and pod. */
  readonly #turns = new Turns();

  constructor(options: VolumePluginsOptions) {
    this.#options = options;
  }

  get records(): MountRecords {
    return this.#options.records;
  }

  connect(client: ApiClient): void {
    this.#options.claims.connect(client);
    for (const each of this.#options.connected) each.connect(client);
  }

  isFor(volume: Volume): boolean {
    const { persistentVolumeClaim, ephemeral, csi, nfs, iscsi } = volume;
    const sources = [persistentVolumeClaim, ephemeral, csi, nfs, iscsi, imageSourceOf(volume)];
    return sources.some((source) => source !== undefined);
  }

  /** Idempotent. Volumes of running pods need neither the API server nor a driver after a restart of the kubelet. */
  async setUp(pod: Pod, volume: Volume): Promise<void> {
    const known = await this.#options.records.get(pod.metadata?.uid ?? '', volume.name);
    if (known !== undefined && (await this.#options.isReady(known))) return;
    const claimName = claimNameOf(pod, volume);
    const bound = claimName === undefined ? {} : await this.#options.claims.resolve(pod, volume, claimName);
    const request: VolumeRequest = { pod, volume, ...bound };
    const name = request.persistent?.metadata?.name;
    if (name === undefined || !isForOnePod(request)) return this.#setUp(request);
    await this.#turns.inTurn(name, async () => {
      const uid = pod.metadata?.uid ?? '';
      const others = (await this.#options.records.all()).filter((each) => each.claim !== undefined && each.uid !== uid);
      if (others.some((each) => each.name === name)) {
        throw new Error('volume uses the ReadWriteOncePod access mode and is already in use by another pod');
      }
      await this.#setUp(request);
    });
  }

  async #setUp(request: VolumeRequest): Promise<void> {
    const { csi, local, network, images } = this.#options;
    const image = request.persistent === undefined ? imageSourceOf(request.volume) : undefined;
    if (image !== undefined) return images.setUp(request, image);
    const source = request.persistent?.spec ?? request.volume;
    if (source.csi !== undefined) return csi.setUp(request);
    if (source.nfs !== undefined) return network.setUpNfs(request, source.nfs);
    if (source.iscsi !== undefined) return network.setUpIscsi(request, source.iscsi as never);
    const { spec } = request.persistent ?? {};
    if (spec?.local !== undefined || spec?.hostPath !== undefined) return local.setUp(request);
    const kind = Object.keys(spec ?? {}).find((field) => SOURCES.has(field)) ?? 'unknown';
    throw new Error(`no volume plugin matched: ${kind} volumes are not supported on this node`);
  }

  /** Whether a driver of the pod requires periodic republishing. */
  republishes(uid: string): boolean {
    return this.#options.records.ofPod(uid).some((record) => record.kind === 'csi' && record.republish);
  }

  /** Rejects while a driver or tool fails. Volumes that were not undone stay recorded. */
  async tearDown(uid: string): Promise<void> {
    for (const record of await this.#options.records.all()) if (record.uid === uid) await this.#undo(record);
  }

  #undo(record: MountRecord): Promise<void> {
    const { csi, local, network } = this.#options;
    switch (record.kind) {
      case 'csi':
        return csi.tearDown(record);
      case 'nfs':
      case 'iscsi':
        return network.tearDown(record);
      case 'image':
        return this.#options.images.tearDown(record as PlainMount);
      default:
        return local.tearDown(record);
    }
  }
}

/** Source: pkg/volume/util/operationexecutor operation_generator.go. */
const isForOnePod = ({ persistent }: VolumeRequest): boolean =>
  persistent?.spec?.accessModes?.join() === 'ReadWriteOncePod';

/** Sources of PersistentVolumes that were once in-tree drivers of Kubernetes. */
const SOURCES = new Set(
  'awsElasticBlockStore azureDisk azureFile cephfs cinder fc flexVolume flocker gcePersistentDisk glusterfs photonPersistentDisk portworxVolume quobyte rbd scaleIO storageos vsphereVolume'.split(
    ' ',
  ),
);

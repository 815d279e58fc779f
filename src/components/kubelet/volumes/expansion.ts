/**
 * The node's part of growing a claim: once its volume has the new size, the file system or device on this node follows,
 * and the claim's status says so. Source: KEP-1790, pkg/volume/util/operationexecutor node_expander.go.
 */
import type { PersistentVolume, PersistentVolumeClaim, Pod } from 'kubernetes-types/core/v1';
import { resources } from '../../../api/resources.ts';
import { awaitsNodeExpansion, expandedStatus } from '../../../api/volumes/expansion.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import { parseBytes } from '../../../base/quantity.ts';
import type { ApiClient } from '../../../client/types.ts';
import type { KubeletEvents } from '../pods/events.ts';
import type { ClaimVolumes } from './claims.ts';
import type { CsiVolumes } from './csi/volumes.ts';
import type { LocalVolumes } from './local-volumes.ts';
import type { MountRecord, MountRecords } from './records.ts';

export interface VolumeExpansionOptions {
  readonly claims: ClaimVolumes;
  readonly records: MountRecords;
  readonly csi: CsiVolumes;
  readonly local: LocalVolumes;
  readonly events: KubeletEvents;
  readonly log: Log;
  readonly pod: (uid: string) => Pod | undefined;
}

export class VolumeExpansion {
  readonly #options: VolumeExpansionOptions;
  #client: ApiClient | undefined;

  constructor(options: VolumeExpansionOptions) {
    this.#options = options;
  }

  connect(client: ApiClient): void {
    this.#client = client;
  }

  /** Looks at every claim that is mounted here; one request for each, as a node cannot watch claims. */
  async run(): Promise<void> {
    if (this.#client === undefined) return;
    const seen = new Set<string>();
    for (const record of await this.#options.records.all()) {
      if (record.claim === undefined || seen.has(record.claim)) continue;
      seen.add(record.claim);
      await this.#look(this.#client, record, record.claim);
    }
  }

  async #look(client: ApiClient, record: MountRecord, key: string): Promise<void> {
    const { claims, events, log } = this.#options;
    const claim = await claims.claim(key).catch(() => undefined);
    if (claim === undefined || !awaitsNodeExpansion(claim)) return;
    const persistent = await claims.persistentVolume(claim.spec?.volumeName ?? '');
    const size = persistent?.spec?.capacity?.['storage'];
    if (persistent === undefined || size === undefined) return;
    const pod = this.#options.pod(record.uid);
    const about = `NodeExpandVolume failed for volume "${persistent.metadata?.name ?? ''}"`;
    try {
      await this.#expand(record, persistent, parseBytes(size));
      await this.#finish(client, claim, size);
    } catch (error) {
      log.warn('volume not expanded', { claim: key, error: messageOf(error) });
      if (pod !== undefined) {
        events.pod(pod, 'Warning', 'VolumeResizeFailed', `MountVolume.${about} : ${messageOf(error)}`);
      }
      return;
    }
    const message = `MountVolume.NodeExpandVolume succeeded for volume "${persistent.metadata?.name ?? ''}"`;
    events.about({ apiVersion: 'v1', kind: 'PersistentVolumeClaim', ...claim }, 'Normal', DONE, message);
    if (pod !== undefined) events.pod(pod, 'Normal', DONE, message);
  }

  async #expand(record: MountRecord, persistent: PersistentVolume, bytes: number): Promise<void> {
    const { csi, local } = this.#options;
    if (record.kind === 'csi') await csi.expand(record, { persistent }, bytes);
    else if (record.kind === 'local' || record.kind === 'loop') {
      await local.expand(record, persistent.spec?.local?.path ?? '', bytes);
    }
  }

  async #finish(client: ApiClient, claim: PersistentVolumeClaim, size: string): Promise<void> {
    const { name = '', namespace } = claim.metadata ?? {};
    await client
      .resource(resources.persistentVolumeClaims)
      .patch(name, namespace, 'merge', { status: expandedStatus(claim, size) }, { subresource: 'status' });
  }
}

const DONE = 'FileSystemResizeSuccessful';

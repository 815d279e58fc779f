/**
 * Node part of expanding a claim: when the volume has its new size, expands the file system or device on this node and
 * updates the claim's status. Source: KEP-1790, pkg/volume/util/operationexecutor node_expander.go.
 */
import type { PersistentVolumeClaim, Pod } from '../../api/generated/core/v1.ts';
import { resources } from '../../api/resources.ts';
import { awaitsNodeExpansion, expandedStatus, failedOnNode, startedOnNode } from '../../api/volumes/expansion.ts';
import type { Uid } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { compareQuantity, parseBytes, tryParseQuantity } from '../../base/quantity.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import type { ApiClient } from '../../client/types.ts';
import type { KubeletEvents } from '../pods/events.ts';
import type { ClaimVolumes } from './claims.ts';
import { isFinal, isInfeasible } from './csi/port.ts';
import type { VolumePlugins } from './plugins.ts';
import type { MountRecord, MountRecords } from './records.ts';

export interface VolumeExpansionOptions {
  readonly claims: ClaimVolumes;
  readonly records: MountRecords;
  readonly plugins: Pick<VolumePlugins, 'expand'>;
  readonly events: KubeletEvents;
  readonly log: Log;
  readonly nowMs: () => number;
  readonly pod: (uid: Uid) => Pod | undefined;
}

export class VolumeExpansion {
  readonly #options: VolumeExpansionOptions;
  /** Volumes whose driver ended the last attempt with a final error. */
  readonly #failed = new Set<string>();
  #client: ApiClient | undefined;

  constructor(options: VolumeExpansionOptions) {
    this.#options = options;
  }

  connect(client: ApiClient): void {
    this.#client = client;
  }

  /** Checks every claim mounted here with one request each, because a node cannot watch claims. */
  async run(): Promise<void> {
    if (this.#client === undefined) return;
    const seen = new Set<string>();
    const records = await this.#options.records.all();
    for (const name of this.#failed) if (!records.some((each) => each.name === name)) this.#failed.delete(name);
    for (const record of records) {
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
    const name = persistent.metadata?.name ?? '';
    const about = `NodeExpandVolume failed for volume "${name}"`;
    try {
      const started = startedOnNode(claim);
      if (started !== undefined) await this.#patch(client, claim, started);
      await this.#options.plugins.expand(record, persistent, parseBytes(size));
      this.#failed.delete(name);
      await this.#patch(client, claim, expandedStatus(claim, size));
    } catch (error) {
      if (isFinal(error)) await this.#fail(client, claim, { name, size, error });
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

  /**
   * Reports a final error in the claim's status. After a second final error, a claim that requests a different size is
   * marked infeasible, so that its resizer continues.
   */
  async #fail(
    client: ApiClient,
    claim: PersistentVolumeClaim,
    { name, size, error }: { readonly name: string; readonly size: string; readonly error: unknown },
  ): Promise<void> {
    const requested = tryParseQuantity(claim.spec?.resources?.requests?.['storage'] ?? '');
    const target = tryParseQuantity(size);
    const isOther = requested !== undefined && target !== undefined && compareQuantity(requested, target) !== 0;
    const infeasible = isInfeasible(error) || (isOther && this.#failed.has(name));
    this.#failed.add(name);
    const time = timestamp(this.#options.nowMs());
    const status = failedOnNode(claim, { message: messageOf(error), infeasible, time });
    await this.#patch(client, claim, status).catch((failure: unknown) => {
      this.#options.log.warn('claim not updated', { claim: claim.metadata?.name ?? '', error: messageOf(failure) });
    });
  }

  async #patch(client: ApiClient, claim: PersistentVolumeClaim, status: object): Promise<void> {
    const { name = '', namespace } = claim.metadata ?? {};
    await client
      .resource(resources.persistentVolumeClaims)
      .patch(name, namespace, 'strategic', { status }, { subresource: 'status' });
  }
}

const DONE = 'FileSystemResizeSuccessful';

/**
 * Waits until the attach-detach controller has attached a volume to this node. Source: pkg/volume/csi csi_attacher.go,
 * pkg/kubelet/volumemanager/reconciler.
 */

import type { Node } from '../../../api/generated/core/v1.ts';
import type { VolumeAttachment, VolumeError } from '../../../api/generated/storage/v1.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { attachmentNameOf, uniqueIscsiName, uniqueVolumeName } from '../../../api/volumes/attachment.ts';
import { type NodeName, toUid, type Uid } from '../../../base/brand.ts';
import { ignore } from '../../../base/errors.ts';
import type { Clock } from '../../../base/time/clock.ts';
import type { ApiClient } from '../../../client/types.ts';
import { sha256Hex } from '../../../wire/digest.ts';
import type { CsiMount, IscsiMount, MountRecords } from '../records.ts';
import type { StagedRecords } from './staged-records.ts';

const POLL_MS = 200;
/** Time limit of an attachment. After this time, the start of the pod fails with an event and is retried. */
const WAIT_MS = 10_000;

/** Upstream's podAttachAndMountTimeout: how long a pod waits for attach capacity of the node. */
const LIMIT_WAIT_MS = 123_000;
/** gRPC status code. */
const RESOURCE_EXHAUSTED = 8;

type Attachment = Pick<VolumeAttachment, 'metadata' | 'status'>;

/** Attachment of an in-tree volume, which is recorded only in `volumesAttached`. */
const RECORDED: Attachment = { status: { attached: true } };

/**
 * Error for a driver that cannot attach another volume to this node. Its message becomes the message of the pod's
 * status.
 */
export class AttachLimitError extends Error {
  constructor(volume: string, cause: Error) {
    const lists = `unmounted volumes=[${volume}], unattached volumes=[${volume}], failed to process volumes=[]`;
    super(`Node has reached its volume attachment limit, rejecting pod. ${lists}: ${cause.message}`, { cause });
    this.name = 'AttachLimitError';
  }
}

export class Attachments {
  readonly #nodeName: NodeName;
  readonly #node: () => Node | undefined;
  readonly #records: Pick<MountRecords, 'all'>;
  readonly #staged: Pick<StagedRecords, 'all'>;
  readonly #clock: Clock;
  /** Start of the wait, by pod and volume. */
  readonly #sinceMs = new Map<string, number>();
  #client: ApiClient | undefined;
  /** The last report and the UID of the Node to which it was written. */
  #reported: { readonly text: string; readonly uid: Uid } | undefined;
  #reporting: Promise<void> = Promise.resolve();

  constructor(options: {
    readonly nodeName: NodeName;
    readonly node: () => Node | undefined;
    readonly records: Pick<MountRecords, 'all'>;
    readonly staged: Pick<StagedRecords, 'all'>;
    readonly clock: Clock;
  }) {
    this.#nodeName = options.nodeName;
    this.#node = options.node;
    this.#records = options.records;
    this.#staged = options.staged;
    this.#clock = options.clock;
  }

  connect(client: ApiClient): void {
    this.#client = client;
  }

  /**
   * Waits until the volume is attached and returns the publish context of the driver's controller. Rejects with
   * upstream's text if the volume is not attached within ten seconds.
   */
  async wait({ driver, volumeId, uid, volume }: CsiMount): Promise<Readonly<Record<string, string>>> {
    const name = attachmentNameOf(volumeId, driver, this.#nodeName, sha256Hex);
    const unique = uniqueVolumeName(driver, volumeId);
    const attachment = await this.#wait({ uid, volume }, unique, () => this.#attachment(name));
    return attachment.status?.attachmentMetadata ?? {};
  }

  /** Like `wait`, for a volume without a driver, which the controller only records on the Node. */
  async waitInTree(volume: Pick<IscsiMount, 'uid' | 'volume'>, unique: string): Promise<void> {
    await this.#wait(volume, unique, async () => RECORDED);
  }

  async #wait(
    { uid, volume }: Pick<CsiMount, 'uid' | 'volume'>,
    unique: string,
    read: () => Promise<Attachment | undefined>,
  ): Promise<Attachment> {
    const key = `${uid}/${volume}`;
    const sinceMs = this.#sinceMs.get(key) ?? this.#clock.monotonicMs();
    this.#sinceMs.set(key, sinceMs);
    const untilMs = this.#clock.monotonicMs() + WAIT_MS;
    const isListed = (node: Node | undefined): boolean =>
      node?.status?.volumesAttached?.some((each) => each.name === unique) === true;
    for (;;) {
      const isLate = this.#clock.monotonicMs() >= untilMs;
      const mayBeListed = isListed(this.#node());
      const attachment = mayBeListed || isLate ? await read() : undefined;
      const isAttached = attachment?.status?.attached === true && attachment.metadata?.deletionTimestamp === undefined;
      // The local copy of the Node may be older than a detach.
      if (mayBeListed && isAttached && isListed(await this.#liveNode())) {
        this.#sinceMs.delete(key);
        return attachment;
      }
      const attachError: (VolumeError & { readonly errorCode?: number }) | undefined = attachment?.status?.attachError;
      if (attachError !== undefined) {
        const error = new Error(`rpc error: ${attachError.message ?? ''}`);
        const isOver = this.#clock.monotonicMs() - sinceMs >= LIMIT_WAIT_MS;
        throw isOver && attachError.errorCode === RESOURCE_EXHAUSTED ? new AttachLimitError(volume, error) : error;
      }
      if (isLate) {
        throw new Error(
          `Unable to attach or mount volumes: unmounted volumes=[${volume}], unattached volumes=[${volume}], ` +
            'failed to process volumes=[]: timed out waiting for the condition',
        );
      }
      await new Promise<void>((resolve) => {
        this.#clock.setTimer(POLL_MS, resolve);
      });
    }
  }

  forget({ uid, volume }: Pick<CsiMount, 'uid' | 'volume'>): void {
    this.#sinceMs.delete(`${uid}/${volume}`);
  }

  /**
   * Writes the volumes in use to the Node, so that the controller does not detach them. Runs are serialized, so that
   * the newest set is written last.
   */
  report(): Promise<void> {
    const mine = this.#reporting.then(() => this.#report());
    this.#reporting = mine.catch(ignore('the caller of the run gets its error'));
    return mine;
  }

  /**
   * Like `report`, but does nothing before the Node has been read. When the Node is read, the caller checks
   * `isOutdated`.
   */
  async refresh(): Promise<void> {
    if (this.#isKnown()) await this.report();
  }

  #isKnown(): boolean {
    return this.#reported !== undefined || this.#node() !== undefined;
  }

  /** Unique names of the volumes in use, for the Node at registration. */
  async inUse(): Promise<string[]> {
    const used = new Set<string>();
    const records = await this.#records.all();
    const mounted = records.filter((record) => record.kind === 'csi');
    for (const { driver, volumeId, attachable } of [...mounted, ...(await this.#staged.all())]) {
      if (attachable) used.add(uniqueVolumeName(driver, volumeId));
    }
    for (const record of records) {
      const unique = record.kind === 'iscsi' ? uniqueOf(record) : undefined;
      if (unique !== undefined) used.add(unique);
    }
    return [...used].sort();
  }

  /** Whether `volumesInUse` of the current Node differs from the actual set. */
  async isOutdated(): Promise<boolean> {
    const node = this.#node();
    return node !== undefined && textOf(node.status?.volumesInUse) !== textOf(await this.inUse());
  }

  async #report(): Promise<void> {
    const volumesInUse = await this.inUse();
    const text = textOf(volumesInUse);
    const node = this.#node();
    if (!this.#isKnown()) throw new Error('the Node object was not read yet');
    const uid = toUid(node?.metadata?.uid);
    // The local copy of the Node may be older than the last report, and a re-created Node does not contain the report.
    const isCurrent = this.#reported === undefined || (this.#reported.text === text && this.#reported.uid === uid);
    if (node !== undefined && isCurrent && textOf(node.status?.volumesInUse) === text) return;
    const written = await this.#api()
      .resource(resources.nodes)
      .patch(this.#nodeName, undefined, 'strategic', { status: { volumesInUse } }, { subresource: 'status' });
    this.#reported = { text, uid: toUid(written.metadata?.uid) };
  }

  #liveNode(): Promise<Node> {
    return this.#api().resource(resources.nodes).get(this.#nodeName);
  }

  async #attachment(name: string) {
    try {
      return await this.#api().resource(resources.volumeAttachments).get(name);
    } catch (error) {
      if (isApiError(error, 'NotFound') || isApiError(error, 'Forbidden')) return undefined;
      throw error;
    }
  }

  #api(): ApiClient {
    if (this.#client === undefined) throw new Error('the API server is not available yet');
    return this.#client;
  }
}

/** Unique name of the recorded volume. Older releases did not record the name, but their paths contain the LUN. */
function uniqueOf({ unique, portals: [targetPortal = ''], iqn, staging, path }: IscsiMount): string | undefined {
  const unit = /-lun-(\d+)$/.exec(staging === '' ? path : staging)?.[1];
  return unique ?? (unit === undefined ? undefined : uniqueIscsiName({ targetPortal, iqn, lun: Number(unit) }));
}

const textOf = (names: readonly string[] | undefined): string => [...(names ?? [])].sort().join(' ');

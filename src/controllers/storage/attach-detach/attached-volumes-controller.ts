/**
 * Attachment state of volumes: the VolumeAttachments of CSI drivers, and `volumesAttached` of the nodes for in-tree
 * volumes. Writes of this term override the local copies until those catch up. Source:
 * pkg/controller/volume/attachdetach/cache actual_state_of_world.go.
 */

import type { Node, PersistentVolume } from '../../../api/generated/core/v1.ts';
import type { VolumeAttachment } from '../../../api/generated/storage/v1.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { attachmentNameOfUnique, isCsiName, isInTreeName, uniqueNameOf } from '../../../api/volumes/attachment.ts';
import { type NodeName, toNodeName } from '../../../base/brand.ts';
import { Turns } from '../../../base/concurrency/keyed-turns.ts';
import type { Clock } from '../../../base/time/clock.ts';
import type { Informer, ResourceClient } from '../../../client/types.ts';
import { sha256Hex } from '../../../wire/digest.ts';
import type { ControllerHandle } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import type { HeldNode } from './plan.ts';

const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';
const CONFLICTS = 10;
/** Delay after which an attachment that is missing in the local copy is read again. */
const STALE_MS = 10_000;

const pairOf = (unique: string, nodeName: NodeName): string => `${nodeName} ${unique}`;

interface MadeAttachment {
  readonly attachment: VolumeAttachment;
  readonly atMs: number;
}

/** State of one term of leadership. */
export class AttachedVolumes {
  readonly #clock: Clock;
  readonly #attachments: Informer<VolumeAttachment>;
  readonly #nodes: Informer<Node>;
  readonly #volumes: Informer<PersistentVolume>;
  readonly #attachmentClient: ResourceClient<VolumeAttachment>;
  readonly #nodeClient: ResourceClient<Node>;
  /** VolumeAttachments read or created by this term and not yet in the local copy, by name. */
  readonly #made = new Map<string, MadeAttachment>();
  /** Nodes to which in-tree volumes are attached, by unique name of the volume. */
  readonly #inTree = new Map<string, Set<NodeName>>();
  /** Monotonic time since which no pod of the node has needed the volume. */
  readonly #unneededSinceMs = new Map<string, number>();
  /** Pairs of a volume and a node whose entry in `volumesAttached` is removed, because the volume is being detached. */
  readonly #withdrawn = new Set<string>();
  /** Last `volumesInUse` of deleted nodes. */
  readonly #lastInUse = new Map<NodeName, readonly string[]>();
  /** Names of VolumeAttachments whose PersistentVolume does not exist. */
  readonly #orphans = new Set<string>();
  readonly #publishing = new Turns();

  constructor(handle: ControllerHandle) {
    this.#clock = handle.clock;
    this.#attachments = handle.informer(resources.volumeAttachments);
    this.#nodes = handle.informer(resources.nodes);
    this.#volumes = handle.informer(resources.persistentVolumes);
    this.#attachmentClient = handle.writer(resources.volumeAttachments);
    this.#nodeClient = handle.writer(resources.nodes);
  }

  /** Reads attachments of earlier terms from the API server, because the local copies may be older. */
  async load(): Promise<void> {
    const [attachments, nodes] = await Promise.all([this.#attachmentClient.list(), this.#nodeClient.list()]);
    for (const attachment of attachments.items) this.#remember(attachment);
    for (const { metadata, status } of nodes.items) {
      for (const { name } of status?.volumesAttached ?? []) {
        if (isInTreeName(name)) this.#inTreeNodes(name).add(toNodeName(metadata?.name));
      }
    }
  }

  /** Key of an attachment's volume: its unique name, or a synthetic name when the volume cannot be determined. */
  keyOf({ metadata, spec }: VolumeAttachment): string {
    const { persistentVolumeName, inlineVolumeSpec } = spec.source;
    const volume = persistentVolumeName === undefined ? undefined : this.#volumes.get(persistentVolumeName);
    const source = volume?.spec ?? inlineVolumeSpec;
    const unique = source === undefined ? undefined : uniqueNameOf(source);
    if (unique !== undefined) return unique;
    const name = metadata?.name ?? '';
    const { volumesAttached = [], volumesInUse = [] } = this.#nodes.get(spec.nodeName)?.status ?? {};
    const candidates = [
      ...volumesInUse,
      ...volumesAttached.map((each) => each.name),
      ...this.#inUseBefore(toNodeName(spec.nodeName)),
    ];
    const isMine = (each: string): boolean =>
      isCsiName(each) && attachmentNameOfUnique(each, spec.nodeName, sha256Hex) === name;
    return candidates.find(isMine) ?? `VolumeAttachment/${name}`;
  }

  observe(attachment: VolumeAttachment, { isDeleted }: { readonly isDeleted: boolean }): void {
    const name = attachment.metadata?.name ?? '';
    const made = this.#made.get(name)?.attachment.metadata;
    const isOlder = made?.deletionTimestamp !== undefined && attachment.metadata?.deletionTimestamp === undefined;
    if (made?.uid === attachment.metadata?.uid && (isDeleted || !isOlder)) this.#made.delete(name);
    const volume = attachment.spec.source.persistentVolumeName ?? '';
    if (isDeleted || this.#volumes.get(volume) !== undefined) this.#orphans.delete(name);
    else this.#orphans.add(name);
  }

  volumeDeleted(name: string): void {
    for (const { metadata } of this.#attachments.byIndex('volume', name)) this.#orphans.add(metadata?.name ?? '');
  }

  nodeAdded({ metadata }: Node): void {
    this.#lastInUse.delete(toNodeName(metadata?.name));
  }

  nodeDeleted({ metadata, status }: Node): void {
    this.#lastInUse.set(toNodeName(metadata?.name), status?.volumesInUse ?? []);
  }

  /** Keys of the volumes attached to a node. */
  keysOn(nodeName: NodeName): string[] {
    const inTree = [...this.#inTree].filter(([, nodes]) => nodes.has(nodeName)).map(([unique]) => unique);
    return [...new Set([...inTree, ...this.#attachmentsOn(nodeName).map((each) => this.keyOf(each))])];
  }

  /** Keys of all volumes with an attachment. */
  keys(): string[] {
    const made = [...this.#made.values()].map(({ attachment }) => attachment);
    return [
      ...new Set([...this.#inTree.keys(), ...[...this.#attachments.list(), ...made].map((each) => this.keyOf(each))]),
    ];
  }

  /**
   * Nodes to which a volume is attached. `wanted` contains the nodes whose pods need the volume; their unmount timeout
   * is reset.
   */
  held(key: string, wanted: ReadonlySet<NodeName>): HeldNode[] {
    const nowMs = this.#clock.monotonicMs();
    const attachments = this.#attachmentsOf(key);
    const names = new Set([...attachments.map(({ spec }) => spec.nodeName), ...(this.#inTree.get(key) ?? [])]);
    for (const pairs of [this.#unneededSinceMs, this.#withdrawn])
      for (const pair of pairs.keys()) {
        const nodeName = toNodeName(pair.slice(0, pair.indexOf(' ')));
        const isOther = pair !== pairOf(key, nodeName);
        if (!isOther && (!names.has(nodeName) || wanted.has(nodeName))) pairs.delete(pair);
      }
    const common = (nodeName: NodeName) => {
      const pair = pairOf(key, nodeName);
      if (!wanted.has(nodeName) && !this.#unneededSinceMs.has(pair)) this.#unneededSinceMs.set(pair, nowMs);
      const node = this.#nodes.get(nodeName);
      const inUse = node === undefined ? this.#lastInUse.get(nodeName) : (node.status?.volumesInUse ?? []);
      const isReady = node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
      return {
        nodeName,
        // If the node has not reported its volumes, the volume counts as mounted.
        isMounted: inUse?.includes(key) !== false,
        isHealthy: isReady === true,
        isOutOfService: node?.spec?.taints?.some((taint) => taint.key === OUT_OF_SERVICE) === true,
        unneededMs: nowMs - (this.#unneededSinceMs.get(pair) ?? nowMs),
        isListed: node?.status?.volumesAttached?.some((each) => each.name === key) === true,
      };
    };
    const ofDrivers = attachments.map(({ metadata, spec, status }): HeldNode => {
      const error = status?.attachError?.message;
      const isDetaching = metadata?.deletionTimestamp !== undefined;
      return {
        ...common(toNodeName(spec.nodeName)),
        state: isDetaching ? 'detaching' : status?.attached === true ? 'attached' : 'attaching',
        ...(status?.attachError === undefined ? {} : { error: error ?? '' }),
        isOwn: metadata?.name?.startsWith('csi-') === true,
      };
    });
    const inTree = [...(this.#inTree.get(key) ?? [])].map(
      (nodeName): HeldNode => ({ ...common(nodeName), state: 'attached', isOwn: true }),
    );
    return [...ofDrivers, ...inTree];
  }

  /** Attaches the volume. The attachment is recorded before further planning for the volume. */
  async attach(unique: string, nodeName: NodeName, persistentVolumeName: string): Promise<void> {
    if (isInTreeName(unique)) {
      this.#inTreeNodes(unique).add(nodeName);
      return;
    }
    const [attacher = ''] = unique.slice('kubernetes.io/csi/'.length).split('^');
    const name = attachmentNameOfUnique(unique, nodeName, sha256Hex);
    try {
      this.#remember(
        await this.#attachmentClient.create({
          apiVersion: 'storage.k8s.io/v1',
          kind: 'VolumeAttachment',
          metadata: { name },
          spec: { attacher, nodeName, source: { persistentVolumeName } },
        }),
      );
    } catch (error) {
      if (!isApiError(error, 'AlreadyExists')) throw error;
      this.#remember(await this.#attachmentClient.get(name));
    }
  }

  /**
   * Removes the volume from the node's `volumesAttached` and then detaches it. Returns false when the node has reported
   * in the meantime that it uses the volume. This is safe because the kubelet reports the use before it reads
   * `volumesAttached`, and the write is conditional on the Node version in which the volume was unused.
   */
  async detach(key: string, nodeName: NodeName, isForced: boolean): Promise<boolean> {
    const pair = pairOf(key, nodeName);
    this.#withdrawn.add(pair);
    const isSafe = await this.#write(nodeName, (node) => isForced || node.status?.volumesInUse?.includes(key) !== true);
    if (!isSafe) {
      this.#withdrawn.delete(pair);
      return false;
    }
    if (isInTreeName(key)) {
      const nodes = this.#inTree.get(key);
      nodes?.delete(nodeName);
      if (nodes?.size === 0) this.#inTree.delete(key);
    }
    for (const each of this.#attachmentsOf(key)) {
      const { metadata, spec } = each;
      if (spec.nodeName !== nodeName || metadata?.deletionTimestamp !== undefined) continue;
      const { name = '', uid } = metadata ?? {};
      const preconditions = uid === undefined ? {} : { preconditions: { uid } };
      await ignoreNotFound(() => this.#attachmentClient.delete(name, undefined, preconditions));
      // The attachment is recorded as being deleted, because the local copy still shows the volume as attached for a
      // while.
      const deletionTimestamp = metadata?.deletionTimestamp ?? metadata?.creationTimestamp ?? '';
      const attachment = { ...each, metadata: { ...metadata, deletionTimestamp } };
      this.#made.set(name, { attachment, atMs: this.#clock.monotonicMs() });
    }
    return true;
  }

  /** Whether `volumesAttached` of the Node lists exactly its attachments. */
  isPublished(nodeName: NodeName): boolean {
    const node = this.#nodes.get(nodeName);
    return node === undefined || isSame(node, this.#listOf(nodeName));
  }

  async publish(nodeName: NodeName): Promise<void> {
    await this.#write(nodeName, () => true);
  }

  /** Reads attachments again that have not appeared in the local copy. */
  async refresh(key: string): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    for (const [name, { attachment, atMs }] of this.#made) {
      if (nowMs - atMs < STALE_MS || this.keyOf(attachment) !== key) continue;
      try {
        this.#remember(await this.#attachmentClient.get(name));
      } catch (error) {
        if (!isApiError(error, 'NotFound')) throw error;
        this.#made.delete(name);
      }
    }
  }

  /**
   * Writes `volumesAttached` of a Node. Writes of one node are serialized. Returns false when `isAllowed` rejects the
   * current Node.
   */
  #write(nodeName: NodeName, isAllowed: (node: Node) => boolean): Promise<boolean> {
    return this.#publishing.inTurn(nodeName, async () => {
      for (let attempt = 1; ; attempt++) {
        try {
          const node = await this.#nodeClient.get(nodeName);
          if (!isAllowed(node)) return false;
          const volumesAttached = this.#listOf(nodeName).map((name) => ({ name, devicePath: '' }));
          if (isSame(node, this.#listOf(nodeName))) return true;
          const metadata = { resourceVersion: node.metadata?.resourceVersion };
          const body = { metadata, status: { volumesAttached } };
          await this.#nodeClient.patch(nodeName, undefined, 'merge', body, { subresource: 'status' });
          return true;
        } catch (error) {
          if (isApiError(error, 'NotFound')) return true;
          if (!isApiError(error, 'Conflict') || attempt >= CONFLICTS) throw error;
        }
      }
    });
  }

  /** Names of the volumes that `volumesAttached` of a node must list. */
  #listOf(nodeName: NodeName): string[] {
    const inTree = [...this.#inTree].filter(([, nodes]) => nodes.has(nodeName)).map(([unique]) => unique);
    const ofDrivers = this.#attachmentsOn(nodeName)
      .filter(({ metadata, status }) => status?.attached === true && metadata?.deletionTimestamp === undefined)
      .map((each) => this.keyOf(each))
      .filter(isCsiName);
    return [...new Set([...inTree, ...ofDrivers])]
      .filter((each) => !this.#withdrawn.has(pairOf(each, nodeName)))
      .sort();
  }

  #attachmentsOf(key: string): VolumeAttachment[] {
    const volumes = this.#volumes.byIndex('unique-name', key).map(({ metadata }) => metadata?.name ?? '');
    const copied = [
      ...volumes.flatMap((name) => this.#attachments.byIndex('volume', name)),
      ...[...this.#orphans].flatMap((name) => this.#attachments.get(name) ?? []),
    ];
    return this.#current(copied).filter((each) => this.keyOf(each) === key);
  }

  #attachmentsOn(nodeName: NodeName): VolumeAttachment[] {
    return this.#current(this.#attachments.byIndex('node', nodeName)).filter(({ spec }) => spec.nodeName === nodeName);
  }

  /** Attachments in the local copy. Newer versions that this term has read or written replace those of the copy. */
  #current(copied: readonly VolumeAttachment[]): VolumeAttachment[] {
    const made = [...this.#made.values()].map(({ attachment }) => attachment);
    return [...copied.filter(({ metadata }) => !this.#made.has(metadata?.name ?? '')), ...made];
  }

  #remember(attachment: VolumeAttachment): void {
    const name = attachment.metadata?.name ?? '';
    if (this.#attachments.get(name)?.metadata?.uid === attachment.metadata?.uid) this.#made.delete(name);
    else this.#made.set(name, { attachment, atMs: this.#clock.monotonicMs() });
  }

  #inTreeNodes(unique: string): Set<NodeName> {
    const nodes = this.#inTree.get(unique) ?? new Set();
    this.#inTree.set(unique, nodes);
    return nodes;
  }

  #inUseBefore(nodeName: NodeName): readonly string[] {
    return this.#lastInUse.get(nodeName) ?? [];
  }
}

const isSame = ({ status }: Node, names: readonly string[]): boolean =>
  (status?.volumesAttached ?? [])
    .map(({ name }) => name)
    .sort()
    .join(' ') === names.join(' ');

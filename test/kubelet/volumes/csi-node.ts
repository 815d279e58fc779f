/** CSI volumes of a node with a fake driver, an in-memory API and files that survive a restart. */

import type { Node, PersistentVolume, Pod } from '../../../src/api/generated/core/v1.ts';
import type { VolumeAttachmentStatus } from '../../../src/api/generated/storage/v1.ts';
import { resources } from '../../../src/api/resources.ts';
import { attachmentNameOf, uniqueVolumeName } from '../../../src/api/volumes/attachment.ts';
import { toNodeName, toUid } from '../../../src/base/brand.ts';
import { createLog } from '../../../src/base/log.ts';
import { PodDirectories } from '../../../src/kubelet/pods/directories.ts';
import { Attachments } from '../../../src/kubelet/volumes/csi/attachments.ts';
import { StagedRecords } from '../../../src/kubelet/volumes/csi/staged-records.ts';
import { CsiStaging } from '../../../src/kubelet/volumes/csi/staging.ts';
import { CsiVolumes, type CsiVolumesOptions } from '../../../src/kubelet/volumes/csi/volumes.ts';
import { type CsiMount, MountRecords } from '../../../src/kubelet/volumes/records.ts';
import { isDurable } from '../../../src/kubelet/volumes/types/index.ts';
import { sha256Hex } from '../../../src/wire/digest.ts';
import { ManualClock } from '../../client/clocks.ts';
import { MemoryApi } from '../memory-api.ts';

export const DRIVER = 'csi.example.com';
export const UNIQUE = uniqueVolumeName(DRIVER, 'h');

export const podOf = (uid: string): Pod => ({
  metadata: { name: uid, namespace: 'ns', uid },
  spec: { containers: [] },
});
const persistent: PersistentVolume = { metadata: { name: 'pv' }, spec: { csi: { driver: DRIVER, volumeHandle: 'h' } } };

const nothing = async (): Promise<void> => {};

export class CsiNodeLab {
  readonly api = new MemoryApi();
  readonly clock = new ManualClock();
  readonly disk = new Map<string, string>();
  /** Names of the driver's methods in call order. */
  readonly calls: string[] = [];
  /** Additional behaviour of a method. */
  readonly does = new Map<string, () => Promise<void>>();
  isRegistered = true;
  /** Warnings and errors in the log. */
  readonly warnings: string[] = [];
  /** Spec of the CSIDriver. */
  spec: object = {};
  /** Number of refreshes of the node's limit. */
  refreshed = 0;
  #node = this.#boot();

  constructor() {
    this.api.put(resources.nodes, { metadata: { name: 'n1' } });
    this.attach({ attached: true });
  }

  attach(status: VolumeAttachmentStatus & { readonly attachError?: { readonly errorCode?: number } }): void {
    this.api.put(resources.volumeAttachments, {
      metadata: { name: attachmentNameOf('h', DRIVER, 'n1', sha256Hex) },
      spec: { attacher: DRIVER, nodeName: 'n1', source: { persistentVolumeName: 'pv' } },
      status,
    });
    const node = this.node();
    const volumesAttached = status.attached ? [{ name: UNIQUE, devicePath: '' }] : [];
    if (node !== undefined) this.api.put(resources.nodes, { ...node, status: { ...node.status, volumesAttached } });
  }

  get attachments(): Attachments {
    return this.#node.attachments;
  }

  get staging(): CsiStaging {
    return this.#node.staging;
  }

  node(): Node | undefined {
    return this.api.get(resources.nodes, 'n1');
  }

  setUp(uid: string): Promise<void> {
    return this.#node.volumes.setUp({ pod: podOf(uid), volume: { name: 'v' }, persistent });
  }

  async tearDown(uid: string): Promise<void> {
    const record = await this.#node.records.get(toUid(uid), 'v');
    if (record !== undefined) await this.#node.volumes.tearDown(record as CsiMount);
  }

  /** Simulates a new process on the same disk. */
  async restart(): Promise<void> {
    this.#node.staging.stop();
    this.#node = this.#boot();
    await this.#node.staging.resume();
  }

  #boot() {
    const { clock, disk } = this;
    const directories = new PodDirectories({ volumes: '/vol', podLogs: '/logs' } as never, {} as never);
    const files = {
      names: async (directory: string) => {
        const below = [...disk.keys()].filter((path) => path.startsWith(`${directory}/`));
        return [...new Set(below.map((path) => path.slice(directory.length + 1).split('/')[0] ?? ''))];
      },
      replaceDurably: async (path: string, content: string) => void disk.set(path, content),
      makeDirectory: nothing,
      kindOf: async () => 'Directory',
    };
    const tools = {
      read: async (path: string) => disk.get(path),
      removeFile: async (path: string) => void disk.delete(path),
      unmount: nothing,
      removeEmptyDirectory: nothing,
    };
    const method = (name: string) => async (): Promise<void> => {
      this.calls.push(name);
      await this.does.get(name)?.();
    };
    const driver = {
      name: DRIVER,
      capabilities: new Set(['STAGE_UNSTAGE_VOLUME']),
      node: Object.fromEntries(['stage', 'unstage', 'publish', 'unpublish'].map((name) => [name, method(name)])),
    };
    const drivers = {
      get: () => {
        if (!this.isRegistered)
          throw new Error(`driver name ${DRIVER} not found in the list of registered CSI drivers`);
        return driver;
      },
      refresh: async () => {
        this.refreshed += 1;
      },
      object: async () => ({ spec: this.spec }),
    };
    const records = new MountRecords(directories, files as never, tools as never, isDurable);
    const staged = new StagedRecords({ mounts: records, directories, files, tools });
    const attachments = new Attachments({
      nodeName: toNodeName('n1'),
      node: () => this.node(),
      records,
      staged,
      clock,
    });
    attachments.connect(this.api.client());
    const sink = { write: (line: string) => void (/ [WE] /.test(line) && this.warnings.push(line)) };
    const log = createLog({ component: 'volumes', level: 0, sink, nowMs: () => 0 });
    const staging = new CsiStaging({
      drivers: drivers as never,
      staged,
      attachments,
      directories,
      tools,
      clock,
      log,
    });
    const volumes = new CsiVolumes({
      drivers,
      records,
      attachments,
      staging,
      directories,
      files,
      tools,
      mounts: { isMountPoint: async () => false },
      context: { secretOf: async () => ({}), tokens: async () => ({}), publishSecrets: async () => ({}) },
    } as unknown as CsiVolumesOptions);
    return { records, attachments, staging, volumes };
  }
}

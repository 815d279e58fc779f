/** Volumes at a path of this host: `local` and `hostPath` PersistentVolumes. Source: pkg/volume/{local,hostpath}. */
import type { PersistentVolume } from '../../../api/generated/core/v1.ts';
import { annotationOf, PROVISIONED_BY } from '../../../api/volumes/binding.ts';
import { LOCAL_PROVISIONER } from '../../../api/volumes/local-provisioner.ts';
import { toUid } from '../../../base/brand.ts';
import { Turns } from '../../../base/concurrency/keyed-turns.ts';
import { messageOf } from '../../../base/errors.ts';
import { parseBytes } from '../../../base/quantity.ts';
import type { LoopMount, PlainMount } from '../records.ts';
import { claimKeyOf, isBlock, isReadOnly, nameOf, type VolumeRequest } from '../request.ts';
import { prepareHostPath } from './host-path.ts';
import type { RecordedType, RecordedVolumeHost, RecordedVolumes } from './type.ts';

export const local: RecordedType = {
  way: 'recorded',
  persistentSources: ['local', 'hostPath'],
  records: ['local', 'loop'],
  create: (host) => new LocalVolumes(host),
};

export type LocalVolumeHost = Pick<
  RecordedVolumeHost,
  'records' | 'directories' | 'foreign' | 'mounts' | 'tools' | 'log'
>;

export class LocalVolumes implements RecordedVolumes {
  readonly #host: LocalVolumeHost;
  /** Serializes operations per file, so that an ending pod does not detach the loop device of the next pod. */
  readonly #loops = new Turns();

  constructor(host: LocalVolumeHost) {
    this.#host = host;
  }

  async setUp(request: VolumeRequest): Promise<void> {
    if (isBlock(request)) return this.#setUpBlock(request);
    const { records, foreign, mounts } = this.#host;
    this.#checkOwner(request);
    const { local, hostPath } = request.persistent?.spec ?? {};
    const path = local === undefined ? await prepareHostPath(hostPath ?? { path: '' }, foreign) : local.path;
    if (local !== undefined) await this.#prepareDirectory(request, path);
    const { securityContext } = request.pod.spec ?? {};
    // hostPath volumes keep their owners.
    if (local !== undefined && securityContext?.fsGroup !== undefined && !isReadOnly(request)) {
      await foreign.ownByGroup(path, securityContext.fsGroup, securityContext.fsGroupChangePolicy);
    }
    const record = this.recordOf(request);
    await records.put(record);
    await foreign.bindSubPath(path, '', record.path);
    // A file system that an administrator mounts over the volume's directory also appears here, above the bind mount.
    // While the two mounts propagate to each other, the end of the pod would unmount it on the host too.
    if (!propagatesToHost(request)) await mounts.receiveMounts(record.path);
  }

  recordOf(request: VolumeRequest): PlainMount {
    const uid = toUid(request.pod.metadata?.uid);
    const claim = claimKeyOf(request);
    return {
      kind: 'local',
      uid,
      volume: request.volume.name,
      name: nameOf(request),
      block: false,
      path: this.#host.directories.volume(uid, 'local-volume', request.volume.name),
      ...(isProvisioned(request) ? { limitBytes: bytesOf(request) } : {}),
      ...(claim === undefined ? {} : { claim }),
    };
  }

  async tearDown(record: PlainMount | LoopMount): Promise<void> {
    const { mounts, tools, records } = this.#host;
    if (record.kind === 'loop') {
      await this.#loops.inTurn(record.file, async () => {
        if (!(await this.#isShared(record))) await tools.detachLoop(record.file);
        await records.remove(record);
      });
      return;
    }
    // The host may have mounted file systems below the directory of the volume, which the bind mount also shows.
    await mounts.unmountTree(record.path);
    await records.remove(record);
  }

  /** Sets the new size of a volume of the embedded provisioner. */
  async expand(record: PlainMount | LoopMount, { spec }: PersistentVolume, bytes: number): Promise<void> {
    const { tools, records } = this.#host;
    if (record.kind !== 'loop') {
      await tools.limitDirectory(spec?.local?.path ?? '', bytes);
      await records.put({ ...record, limitBytes: bytes });
      return;
    }
    await tools.makeImage(record.file, bytes);
    await tools.resizeLoop(record.file);
  }

  /**
   * Checks that a provisioned volume is in this node's own directory. The path comes from a report of the node for
   * which the volume was provisioned, and that node could report a path of another node.
   */
  #checkOwner(request: VolumeRequest): void {
    if (!isProvisioned(request)) return;
    const { metadata: { name = '' } = {}, spec } = request.persistent ?? {};
    const path = spec?.local?.path ?? spec?.hostPath?.path;
    if (path !== this.#host.directories.localVolume(name))
      throw new Error(`local volume "${name}": ${path} is not in the directory of this node's local volumes`);
  }

  async #prepareDirectory(request: VolumeRequest, path: string): Promise<void> {
    const { foreign, tools, log } = this.#host;
    if (isProvisioned(request)) {
      await tools.createOnce(path, () => foreign.makeDirectory(path, 0o777));
      if (!(await tools.limitDirectory(path, bytesOf(request)))) {
        log.v(4, 'volume size not enforced: no project quota', { volume: request.persistent?.metadata?.name ?? '' });
      }
    }
    if ((await foreign.kindOf(path)) !== 'Directory') throw new Error(`path "${path}" does not exist`);
  }

  /** Uses a device directly, and a file, such as the provisioner's, through a loop device. */
  async #setUpBlock(request: VolumeRequest): Promise<void> {
    this.#checkOwner(request);
    const { records, foreign, tools } = this.#host;
    const file = request.persistent?.spec?.local?.path ?? request.persistent?.spec?.hostPath?.path ?? '';
    const claim = claimKeyOf(request);
    const shared = {
      uid: toUid(request.pod.metadata?.uid),
      volume: request.volume.name,
      name: nameOf(request),
      block: true,
      ...(claim === undefined ? {} : { claim }),
    };
    if (isProvisioned(request)) {
      const make = () => tools.makeImage(file, bytesOf(request));
      await tools.createOnce(file, make);
      await make();
    }
    const kind = await foreign.kindOf(file);
    if (kind === 'BlockDevice') return records.put({ ...shared, kind: 'local', path: file });
    if (kind !== 'File') throw new Error(`path "${file}" is not a block device or a file`);
    const known = await records.get(shared.uid, shared.volume);
    try {
      await this.#loops.inTurn(file, async () => {
        await records.put({ ...shared, kind: 'loop', file, path: known?.path ?? '' });
        await records.put({ ...shared, kind: 'loop', file, path: await tools.attachLoop(file, { readOnly: false }) });
      });
    } catch (error) {
      throw new Error(`MapVolume.SetUpDevice failed for volume "${shared.name}" : ${messageOf(error)}`, {
        cause: error,
      });
    }
  }

  /** Whether the mount or the device exists. A loop device may have been detached, so its set-up is repeated. */
  async isReady(record: PlainMount | LoopMount): Promise<boolean> {
    const { foreign, mounts } = this.#host;
    if (!record.block) return mounts.isMountPoint(record.path);
    return record.kind !== 'loop' && (await foreign.kindOf(record.path)) === 'BlockDevice';
  }

  async #isShared({ file, uid, volume }: LoopMount): Promise<boolean> {
    const all = await this.#host.records.all();
    return all.some(
      (each) => each.kind === 'loop' && each.file === file && (each.uid !== uid || each.volume !== volume),
    );
  }
}

/** Whether a container mounts the volume so that its mounts become visible on the host. */
function propagatesToHost({ pod, volume }: VolumeRequest): boolean {
  const { containers = [], initContainers = [] } = pod.spec ?? {};
  return [...containers, ...initContainers].some(({ volumeMounts = [] }) =>
    volumeMounts.some(({ name, mountPropagation }) => name === volume.name && mountPropagation === 'Bidirectional'),
  );
}

const isProvisioned = ({ persistent }: VolumeRequest): boolean =>
  persistent !== undefined && annotationOf(persistent, PROVISIONED_BY) === LOCAL_PROVISIONER;

const bytesOf = ({ persistent }: VolumeRequest): number => parseBytes(persistent?.spec?.capacity?.['storage'] ?? '0');

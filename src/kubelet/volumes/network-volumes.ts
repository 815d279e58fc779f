/** NFS and iSCSI volumes through the host's own tools. Source: pkg/volume/nfs, pkg/volume/iscsi. */
import { join } from 'node:path';
import type { ISCSIVolumeSource, NFSVolumeSource, SecretReference } from '../../api/generated/core/v1.ts';
import { uniqueIscsiName } from '../../api/volumes/attachment.ts';
import { portalWithPort } from '../../api/volumes/iscsi.ts';
import { Turns } from '../../base/concurrency/keyed-turns.ts';
import type { ForeignFiles, VolumeFiles } from '../files-port.ts';
import type { PodDirectories } from '../pods/directories.ts';
import type { Mounter } from '../port.ts';
import type { Attachments } from './csi/attachments.ts';
import type { IscsiMount, MountRecords, PlainMount } from './records.ts';
import { claimKeyOf, isBlock, isReadOnly, nameOf, type VolumeRequest } from './request.ts';
import type { IscsiChap, VolumeTools } from './tools-port.ts';

/** Keys below `discovery.sendtargets.auth` and `node.session.auth`. Source: pkg/volume/iscsi chapSt, chapSess. */
const CHAP_KEYS = ['username', 'password', 'username_in', 'password_in'] as const;

export interface NetworkVolumesOptions {
  readonly records: MountRecords;
  readonly directories: PodDirectories;
  readonly files: VolumeFiles;
  /** File operations on the content of volumes. */
  readonly foreign: ForeignFiles;
  readonly mounts: Mounter;
  readonly tools: VolumeTools;
  readonly attachments: Pick<Attachments, 'report' | 'waitInTree' | 'forget'>;
  /** Publishes `volumesInUse` now, or when the API server responds again. */
  readonly reportSoon: () => void;
  readonly secretOf: (reference: SecretReference) => Promise<Readonly<Record<string, string>>>;
}

export class NetworkVolumes {
  readonly #options: NetworkVolumesOptions;
  /** Serialized per target, so that an ending pod does not log out of a target that the next pod logs in to. */
  readonly #targets = new Turns();

  constructor(options: NetworkVolumesOptions) {
    this.#options = options;
  }

  async setUpNfs(request: VolumeRequest, source: NFSVolumeSource): Promise<void> {
    const { records, mounts, files, tools } = this.#options;
    const record: PlainMount = { ...this.#common(request, 'nfs'), kind: 'nfs' };
    if (await mounts.isMountPoint(record.path)) return;
    await files.makeDirectory(record.path, 0o750);
    await records.put(record);
    await tools.mount({
      type: 'nfs',
      source: `${source.server.includes(':') ? `[${source.server}]` : source.server}:${source.path}`,
      target: record.path,
      options: [
        ...(source.readOnly === true || isReadOnly(request) ? ['ro'] : []),
        ...(request.persistent?.spec?.mountOptions ?? []),
      ],
    });
  }

  /** Mounts only after the attach-detach controller has recorded the disk for this node. */
  async setUpIscsi(request: VolumeRequest, source: ISCSIVolumeSource): Promise<void> {
    const { records, mounts, directories, attachments } = this.#options;
    const { iqn, lun, targetPortal, portals = [] } = source;
    if (source.initiatorName !== undefined) {
      throw new Error('iscsi.initiatorName: not supported on this node; set it in /etc/iscsi/initiatorname.iscsi');
    }
    const record: IscsiMount = {
      ...this.#common(request, 'iscsi'),
      kind: 'iscsi',
      portals: [targetPortal, ...portals],
      iqn,
      staging: isBlock(request) ? '' : directories.iscsiStaging(iqn, lun),
      unique: uniqueIscsiName(source),
    };
    if (!record.block && (await mounts.isMountPoint(record.path))) return;
    await this.#targets.inTurn(iqn, () => records.put(record));
    await attachments.report();
    await attachments.waitInTree(record, uniqueIscsiName(source));
    await this.#targets.inTurn(iqn, () => this.#mountIscsi(request, source, record));
  }

  async #mountIscsi(request: VolumeRequest, source: ISCSIVolumeSource, record: IscsiMount): Promise<void> {
    const { records, mounts, files, foreign, tools } = this.#options;
    const { iqn, lun, iscsiInterface = 'default', fsType } = source;
    const { portals, staging } = record;
    const chap = await this.#chap(request, source);
    const target = { portals, iqn, lun, interface: iscsiInterface, ...(chap === undefined ? {} : { chap }) };
    const device = await tools.iscsiLogin(target);
    if (record.block) return records.put({ ...record, path: device });
    const isReadOnlyDevice = source.readOnly === true || isReadOnly(request);
    if (!(await mounts.isMountPoint(staging))) {
      await files.makeDirectory(staging, 0o750);
      await tools.formatAndMount(device, staging, fsType ?? 'ext4', isReadOnlyDevice);
    }
    const { securityContext } = request.pod.spec ?? {};
    if (securityContext?.fsGroup !== undefined && !isReadOnlyDevice) {
      await foreign.ownByGroup(staging, securityContext.fsGroup, securityContext.fsGroupChangePolicy);
    }
    await foreign.bindSubPath(staging, '', record.path);
  }

  /**
   * CHAP credentials from a Secret of type `kubernetes.io/iscsi-chap`. Throws an Error that names the missing key,
   * never a value.
   */
  async #chap({ pod, persistent }: VolumeRequest, source: ISCSIVolumeSource): Promise<IscsiChap | undefined> {
    const { chapAuthDiscovery = false, chapAuthSession = false, secretRef } = source;
    if (!chapAuthDiscovery && !chapAuthSession) return undefined;
    if (secretRef?.name === undefined) throw new Error('iscsi: CHAP authentication needs secretRef');
    // The secret reference of a PersistentVolume contains its namespace.
    const own = persistent?.spec?.iscsi?.secretRef?.namespace ?? pod.metadata?.namespace ?? '';
    const secret = await this.#options.secretOf({ name: secretRef.name, namespace: own });
    const settings = (prefix: string): Record<string, string> => {
      const found = CHAP_KEYS.flatMap((key) => {
        const value = secret[`${prefix}.${key}`];
        return value === undefined ? [] : [[`${prefix}.${key}`, value] as const];
      });
      if (!found.some(([key]) => key.endsWith('.password')))
        throw new Error(`iscsi: secret "${secretRef.name}" has no ${prefix}.password`);
      return Object.fromEntries(found);
    };
    return {
      discovery: chapAuthDiscovery ? settings('discovery.sendtargets.auth') : {},
      session: chapAuthSession ? settings('node.session.auth') : {},
    };
  }

  async tearDown(record: PlainMount | IscsiMount): Promise<void> {
    const { records, tools } = this.#options;
    if (record.kind === 'iscsi') return this.#targets.inTurn(record.iqn, () => this.#tearDownIscsi(record));
    await tools.unmount(record.path);
    await records.remove(record);
  }

  /** Logs out of the portals that no other volume of any pod uses. */
  async #tearDownIscsi(record: IscsiMount): Promise<void> {
    const { records, tools, attachments, reportSoon } = this.#options;
    if (!record.block) await tools.unmount(record.path);
    if (record.staging !== '' && !(await this.#others(record)).some(({ staging }) => staging === record.staging)) {
      await tools.unmount(record.staging);
      await tools.removeEmptyDirectory(record.staging);
    }
    const used = new Set((await this.#others(record)).flatMap(({ portals }) => portals.map(portalWithPort)));
    const portals = record.portals.filter((portal) => !used.has(portalWithPort(portal)));
    if (portals.length > 0) await tools.iscsiLogout({ portals, iqn: record.iqn });
    await records.remove(record);
    attachments.forget(record);
    reportSoon();
  }

  /** Other volumes of the record's target, of any pod. */
  async #others({ iqn, uid, volume }: IscsiMount): Promise<readonly IscsiMount[]> {
    return (await this.#options.records.all()).filter(
      (each): each is IscsiMount =>
        each.kind === 'iscsi' && each.iqn === iqn && (each.uid !== uid || each.volume !== volume),
    );
  }

  #common(request: VolumeRequest, plugin: string) {
    const uid = request.pod.metadata?.uid ?? '';
    const claim = claimKeyOf(request);
    const path = join(this.#options.directories.volume(uid, plugin, nameOf(request)));
    const own = { uid, volume: request.volume.name, name: nameOf(request), block: isBlock(request), path };
    return claim === undefined ? own : { ...own, claim };
  }
}

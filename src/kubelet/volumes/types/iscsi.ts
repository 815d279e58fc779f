/** iSCSI volumes through the host's own tools. Source: pkg/volume/iscsi. */
import type { ISCSIVolumeSource } from '../../../api/generated/core/v1.ts';
import { uniqueIscsiName } from '../../../api/volumes/attachment.ts';
import { portalWithPort } from '../../../api/volumes/iscsi.ts';
import { Turns } from '../../../base/concurrency/keyed-turns.ts';
import { messageOf } from '../../../base/errors.ts';
import { sha256Hex } from '../../../wire/digest.ts';
import type { Attachments } from '../csi/attachments.ts';
import type { CsiContext } from '../csi/context.ts';
import type { CsiStaging } from '../csi/staging.ts';
import { commonRecord, type IscsiMount } from '../records.ts';
import { isBlock, isReadOnly, type VolumeRequest } from '../request.ts';
import type { IscsiChap } from '../tools-port.ts';
import type { RecordedType, RecordedVolumeHost, RecordedVolumes } from './type.ts';

export const iscsi: RecordedType = {
  way: 'recorded',
  source: 'iscsi',
  persistentSources: ['iscsi'],
  records: ['iscsi'],
  durable: true,
  isReadOnly: ({ iscsi: source }) => source?.readOnly === true,
  create: (host) => new IscsiVolumes(host),
};

/** Keys below `discovery.sendtargets.auth` and `node.session.auth`. Source: pkg/volume/iscsi chapSt, chapSess. */
const CHAP_KEYS = ['username', 'password', 'username_in', 'password_in'] as const;
const CHAP_SETTINGS = ['discovery.sendtargets.auth', 'node.session.auth'].flatMap((prefix) =>
  CHAP_KEYS.map((key) => `${prefix}.${key}`),
);

export interface IscsiVolumeHost
  extends Pick<RecordedVolumeHost, 'records' | 'directories' | 'files' | 'foreign' | 'mounts' | 'tools'> {
  readonly attachments: Pick<Attachments, 'report' | 'waitInTree' | 'forget'>;
  /** Publishes `volumesInUse` now, or when the API server responds again. */
  readonly staging: Pick<CsiStaging, 'reportSoon'>;
  readonly context: Pick<CsiContext, 'secretOf'>;
}

export class IscsiVolumes implements RecordedVolumes {
  readonly #host: IscsiVolumeHost;
  /**
   * Serializes operations per target, so that an ending pod does not log out of a target that the next pod logs in to.
   */
  readonly #targets = new Turns();

  constructor(host: IscsiVolumeHost) {
    this.#host = host;
  }

  /** Mounts only after the attach-detach controller has recorded the disk for this node. */
  async setUp(request: VolumeRequest): Promise<void> {
    const source = sourceOf(request);
    const { records, mounts, directories, attachments } = this.#host;
    const { iqn, lun, targetPortal, portals = [] } = source;
    if (source.initiatorName !== undefined) {
      throw new Error('iscsi.initiatorName: not supported on this node; set it in /etc/iscsi/initiatorname.iscsi');
    }
    const common = commonRecord(directories, request, 'iscsi');
    const known = await records.get(common.uid, common.volume);
    const record: IscsiMount = {
      ...common,
      kind: 'iscsi',
      portals: [targetPortal, ...portals],
      iqn,
      staging: isBlock(request) ? '' : directories.iscsiStaging(iqn, lun, keyOf(source)),
      unique: uniqueIscsiName(source),
      credentials: credentialsOf(request, source),
      // Older releases logged in without recording it.
      login: known?.kind === 'iscsi' && known.login !== false,
    };
    if (!record.block && (await mounts.isMountPoint(record.path))) return;
    await this.#targets.inTurn(iqn, () => records.put(record));
    await attachments.report();
    await attachments.waitInTree(record, uniqueIscsiName(source));
    await this.#targets.inTurn(iqn, () => this.#mount(request, source, record));
  }

  async #mount(request: VolumeRequest, source: ISCSIVolumeSource, record: IscsiMount): Promise<void> {
    const { records, mounts, files, foreign, tools } = this.#host;
    const { iqn, lun, iscsiInterface = 'default', fsType } = source;
    const { portals, staging } = record;
    const chap = await this.#chap(record.credentials ?? '', source);
    if (request.persistent === undefined) await this.#checkInline(record, chap);
    await records.put({ ...record, login: true });
    const target = { portals, iqn, lun, interface: iscsiInterface, ...(chap === undefined ? {} : { chap }) };
    const device = await tools.iscsiLogin(target);
    if (record.block) return records.put({ ...record, login: true, path: device });
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
   * Checks that a volume in a pod's spec uses neither a session of the host itself nor a session that a volume with
   * other credentials has opened. Its author must not reach a disk through the login of another user. The author of a
   * PersistentVolume is an administrator, so PersistentVolumes are not checked.
   */
  async #checkInline(record: IscsiMount, chap: IscsiChap | undefined): Promise<void> {
    const others = await this.#others(record);
    const portals = new Set(record.portals.map(portalWithPort));
    for (const other of others) {
      if (!other.portals.some((each) => portals.has(portalWithPort(each)))) continue;
      if (other.credentials === record.credentials) continue;
      if (!(await this.#hasCredentials(other, chap)))
        throw new Error(`iscsi: target ${record.iqn} is in use on this node with other CHAP credentials`);
    }
    if (record.login === true || others.some(({ login }) => login !== false)) return;
    if ((await this.#host.tools.iscsiSessions()).includes(record.iqn))
      throw new Error(
        `iscsi: the host has a session with target ${record.iqn}; log out on the host, or use a PersistentVolume`,
      );
  }

  /** Whether the credentials of another volume equal `chap`. Unknown credentials are not equal. */
  async #hasCredentials({ credentials }: IscsiMount, chap: IscsiChap | undefined): Promise<boolean> {
    if (credentials === undefined) return false;
    if (credentials === '' || chap === undefined) return credentials === '' && chap === undefined;
    try {
      const [namespace = '', name = ''] = credentials.split('/');
      const secret = await this.#host.context.secretOf({ namespace, name });
      const given: Readonly<Record<string, string>> = { ...chap.discovery, ...chap.session };
      return CHAP_SETTINGS.every((key) => given[key] === secret[key]);
    } catch (error) {
      throw new Error(`iscsi: credentials of the target's other user not read: ${messageOf(error)}`, { cause: error });
    }
  }

  /**
   * CHAP credentials from a Secret of type `kubernetes.io/iscsi-chap`. `credentials`: the Secret as `namespace/name`.
   * Throws an Error that names the missing key, never a value.
   */
  async #chap(credentials: string, source: ISCSIVolumeSource): Promise<IscsiChap | undefined> {
    const { chapAuthDiscovery = false, chapAuthSession = false, secretRef } = source;
    if (!chapAuthDiscovery && !chapAuthSession) return undefined;
    if (secretRef?.name === undefined) throw new Error('iscsi: CHAP authentication needs secretRef');
    const [namespace = ''] = credentials.split('/');
    const secret = await this.#host.context.secretOf({ name: secretRef.name, namespace });
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

  tearDown(record: IscsiMount): Promise<void> {
    return this.#targets.inTurn(record.iqn, () => this.#tearDown(record));
  }

  /** Logs out of the portals that no other volume of any pod uses. */
  async #tearDown(record: IscsiMount): Promise<void> {
    const { records, tools, attachments, staging } = this.#host;
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
    staging.reportSoon();
  }

  /** Volumes of all pods that use the record's target, except the record's own volume. */
  async #others({ iqn, uid, volume }: IscsiMount): Promise<readonly IscsiMount[]> {
    return (await this.#host.records.all()).filter(
      (each): each is IscsiMount =>
        each.kind === 'iscsi' && each.iqn === iqn && (each.uid !== uid || each.volume !== volume),
    );
  }
}

/** The secret reference of a PersistentVolume differs in its namespace only. */
const sourceOf = ({ persistent, volume }: VolumeRequest): ISCSIVolumeSource =>
  (persistent?.spec?.iscsi ?? volume.iscsi) as ISCSIVolumeSource;

/** The Secret with the CHAP credentials as `namespace/name`; '' for a volume without authentication. */
function credentialsOf({ pod, persistent }: VolumeRequest, source: ISCSIVolumeSource): string {
  const { chapAuthDiscovery = false, chapAuthSession = false, secretRef } = source;
  if (!chapAuthDiscovery && !chapAuthSession) return '';
  // The secret reference of a PersistentVolume contains its namespace.
  const namespace = persistent?.spec?.iscsi?.secretRef?.namespace ?? pod.metadata?.namespace ?? '';
  return `${namespace}/${secretRef?.name ?? ''}`;
}

/**
 * Key of the disk in its staging path. It includes the portals, because a target of another user may have the same name
 * and number.
 */
const keyOf = ({ targetPortal, portals = [] }: ISCSIVolumeSource): string =>
  sha256Hex(JSON.stringify([targetPortal, ...portals].map(portalWithPort).sort())).slice(0, 16);

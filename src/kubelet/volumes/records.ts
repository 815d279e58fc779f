/**
 * Records of volumes that each pod has mounted through a driver or a host tool. They are written before the first call,
 * so that a restarted kubelet and the orphan collection can undo incomplete work.
 */

import { join } from 'node:path';
import { toUid, type Uid } from '../../base/brand.ts';
import { decodeJson, flag, object, oneOf, optional, own, text } from '../../base/decode.ts';
import type { PodDirectories } from '../pods/directories.ts';
import type { PodFiles } from '../ports/files-port.ts';
import { claimKeyOf, isBlock, nameOf, type VolumeRequest } from './request.ts';
import type { VolumeTools } from './tools-port.ts';

interface Common {
  /** UID of the pod. */
  readonly uid: Uid;
  /** Name of the volume in the pod. */
  readonly volume: string;
  /** Name of the PersistentVolume, or of the volume in the pod. */
  readonly name: string;
  /** Path that containers use: a directory, a file, or a device when `block`. */
  readonly path: string;
  readonly block: boolean;
  /** Claim as `namespace/name`. */
  readonly claim?: string;
}

export interface CsiMount extends Common {
  readonly kind: 'csi';
  readonly driver: string;
  readonly volumeId: string;
  /** '' when the driver does not stage. */
  readonly staging: string;
  readonly target: string;
  readonly attachable: boolean;
  readonly republish: boolean;
}

export interface LoopMount extends Common {
  readonly kind: 'loop';
  readonly file: string;
}

export interface PlainMount extends Common {
  readonly kind: 'local' | 'nfs' | 'image';
  /** Requested size of the claim, for volumes of the embedded provisioner. */
  readonly limitBytes?: number;
}

export interface IscsiMount extends Common {
  readonly kind: 'iscsi';
  readonly portals: readonly string[];
  readonly iqn: string;
  readonly staging: string;
  /** Name in the Node's `volumesInUse`. Older releases recorded none. */
  readonly unique?: string;
  /**
   * Secret with the CHAP credentials as `namespace/name`; '' for a volume without authentication. Older releases
   * recorded none.
   */
  readonly credentials?: string;
  /** Whether a login for this volume has begun. Older releases recorded none. */
  readonly login?: boolean;
}

export type MountRecord = CsiMount | LoopMount | PlainMount | IscsiMount;

export class MountRecords {
  readonly #directories: PodDirectories;
  readonly #files: PodFiles;
  readonly #tools: Pick<VolumeTools, 'read' | 'removeFile'>;
  readonly #isDurable: (kind: MountRecord['kind']) => boolean;
  readonly #records = new Map<string, MountRecord>();
  #loaded: Promise<void> | undefined;

  /** `isDurable`: records of the kind must survive a power failure. */
  constructor(
    directories: PodDirectories,
    files: PodFiles,
    tools: Pick<VolumeTools, 'read' | 'removeFile'>,
    isDurable: (kind: MountRecord['kind']) => boolean,
  ) {
    this.#directories = directories;
    this.#files = files;
    this.#tools = tools;
    this.#isDurable = isDurable;
  }

  async get(uid: Uid, volume: string): Promise<MountRecord | undefined> {
    await this.#load();
    return this.#records.get(keyOf(uid, volume));
  }

  /** Reads the record from memory. Complete after a `get` or `put` of the same pod. */
  known(uid: Uid, volume: string): MountRecord | undefined {
    return this.#records.get(keyOf(uid, volume));
  }

  /** Reads from memory, like `known`. */
  ofPod(uid: Uid): readonly MountRecord[] {
    return [...this.#records.values()].filter((record) => record.uid === uid);
  }

  async all(): Promise<readonly MountRecord[]> {
    await this.#load();
    return [...this.#records.values()];
  }

  async put(record: MountRecord): Promise<void> {
    await this.#load();
    // After a power failure these records name the volumes that must still be released from their driver or target.
    const text = JSON.stringify(record);
    await (this.#isDurable(record.kind)
      ? this.#files.replaceDurably(this.#path(record), text)
      : this.#files.replace(this.#path(record), text));
    this.#records.set(keyOf(record.uid, record.volume), record);
  }

  async remove(record: MountRecord): Promise<void> {
    await this.#tools.removeFile(this.#path(record));
    this.#records.delete(keyOf(record.uid, record.volume));
  }

  #path({ uid, volume }: Pick<MountRecord, 'uid' | 'volume'>): string {
    return this.#directories.mountRecord(uid, volume);
  }

  #load(): Promise<void> {
    this.#loaded ??= this.#readAll().catch((error: unknown) => {
      // Unreadable records may exist, so the next call reads again.
      this.#loaded = undefined;
      throw error;
    });
    return this.#loaded;
  }

  async #readAll(): Promise<void> {
    for (const uid of (await this.#files.names(this.#directories.pods)).map(toUid)) {
      const directory = this.#directories.mountRecords(uid);
      for (const name of await this.#files.names(directory)) {
        const text = await this.#tools.read(join(directory, name));
        const record = text === undefined ? undefined : parse(text);
        if (record?.uid === uid) this.#records.set(keyOf(uid, record.volume), record);
      }
    }
  }
}

/** Fields that a record of every mounted volume has, except its kind. `plugin`: directory below the pod's volumes. */
export function commonRecord(directories: PodDirectories, request: VolumeRequest, plugin: string): Common {
  const uid = toUid(request.pod.metadata?.uid);
  const claim = claimKeyOf(request);
  return {
    uid,
    volume: request.volume.name,
    name: nameOf(request),
    block: isBlock(request),
    path: directories.volume(uid, plugin, nameOf(request)),
    ...(claim === undefined ? {} : { claim }),
  };
}

const keyOf = (uid: Uid, volume: string): string => `${uid}/${volume}`;

const RECORD = own<MountRecord>(
  object({
    kind: oneOf('csi', 'loop', 'local', 'nfs', 'image', 'iscsi'),
    uid: text,
    volume: text,
    name: text,
    path: text,
    block: flag,
    claim: optional(text),
  }),
);

/** Parses the kubelet's own file, which is replaced atomically. A file emptied by a full disk is ignored. */
function parse(content: string): MountRecord | undefined {
  try {
    return decodeJson(RECORD, content, 'mount record');
  } catch {
    return undefined;
  }
}

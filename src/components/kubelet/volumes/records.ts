/**
 * What each pod has mounted through a driver or a host's tool, on disk before the first call: a kubelet that is started
 * again, and the collection of orphans, undo what was begun.
 */
import { join } from 'node:path';
import type { PodFiles } from '../files-port.ts';
import type { PodDirectories } from '../pods/directories.ts';
import type { VolumeTools } from './tools-port.ts';

interface Common {
  /** Of the pod. */
  readonly uid: string;
  /** In the pod. */
  readonly volume: string;
  /** The PersistentVolume's name, or the volume's in the pod. */
  readonly name: string;
  /** What containers see: a directory, a file, or a device when `block`. */
  readonly path: string;
  readonly block: boolean;
  /** `namespace/name` of its claim. */
  readonly claim?: string;
}

export interface CsiMount extends Common {
  readonly kind: 'csi';
  readonly driver: string;
  readonly volumeId: string;
  /** '': the driver stages nothing. */
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
  /** Of the embedded provisioner's volumes: what the claim requests. */
  readonly limitBytes?: number;
}

export interface IscsiMount extends Common {
  readonly kind: 'iscsi';
  readonly portals: readonly string[];
  readonly iqn: string;
  readonly staging: string;
  /** In the Node's `volumesInUse`. Releases before this one recorded none. */
  readonly unique?: string;
}

export type MountRecord = CsiMount | LoopMount | PlainMount | IscsiMount;

export class MountRecords {
  readonly #directories: PodDirectories;
  readonly #files: PodFiles;
  readonly #tools: Pick<VolumeTools, 'read' | 'removeFile'>;
  readonly #records = new Map<string, MountRecord>();
  #loaded: Promise<void> | undefined;

  constructor(directories: PodDirectories, files: PodFiles, tools: Pick<VolumeTools, 'read' | 'removeFile'>) {
    this.#directories = directories;
    this.#files = files;
    this.#tools = tools;
  }

  async get(uid: string, volume: string): Promise<MountRecord | undefined> {
    await this.#load();
    return this.#records.get(keyOf(uid, volume));
  }

  /** Without reading the disk: after a `get` or `put` of the same pod. */
  known(uid: string, volume: string): MountRecord | undefined {
    return this.#records.get(keyOf(uid, volume));
  }

  /** As `known`. */
  ofPod(uid: string): readonly MountRecord[] {
    return [...this.#records.values()].filter((record) => record.uid === uid);
  }

  async all(): Promise<readonly MountRecord[]> {
    await this.#load();
    return [...this.#records.values()];
  }

  async put(record: MountRecord): Promise<void> {
    await this.#load();
    await this.#files.replace(this.#path(record), JSON.stringify(record));
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
      // Records that could not be read may exist: the next call reads again.
      this.#loaded = undefined;
      throw error;
    });
    return this.#loaded;
  }

  async #readAll(): Promise<void> {
    for (const uid of await this.#files.names(this.#directories.pods)) {
      const directory = this.#directories.mountRecords(uid);
      for (const name of await this.#files.names(directory)) {
        const text = await this.#tools.read(join(directory, name));
        const record = text === undefined ? undefined : parse(text);
        if (record?.uid === uid) this.#records.set(keyOf(uid, record.volume), record);
      }
    }
  }
}

const keyOf = (uid: string, volume: string): string => `${uid}/${volume}`;

/** The kubelet's own file, replaced at once; one that a full disk has emptied counts as none. */
function parse(text: string): MountRecord | undefined {
  try {
    return JSON.parse(text) as MountRecord;
  } catch {
    return undefined;
  }
}

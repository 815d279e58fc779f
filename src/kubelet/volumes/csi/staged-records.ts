/**
 * Records of volumes staged on this node. A record exists from before the first driver call until the driver has
 * unstaged the volume, so that a restarted kubelet unstages unused volumes. Source: vol_data.json of pkg/volume/csi
 * csi_attacher.go.
 */

import { join } from 'node:path';
import type { Uid } from '../../../base/brand.ts';
import { type Decoded, decodeJson, flag, object, text } from '../../../base/decode.ts';
import { sha256Hex } from '../../../wire/digest.ts';
import type { PodDirectories } from '../../pods/directories.ts';
import type { PodFiles } from '../../ports/files-port.ts';
import type { MountRecords } from '../records.ts';
import type { VolumeTools } from '../tools-port.ts';

/** `staging`: staging path for all pods of the node. It identifies the record. */
const STAGED = object({ driver: text, volumeId: text, name: text, staging: text, attachable: flag });
export type StagedVolume = Decoded<typeof STAGED>;

export interface StagedRecordsOptions {
  readonly mounts: Pick<MountRecords, 'all'>;
  readonly directories: Pick<PodDirectories, 'stagedRecords'>;
  readonly files: Pick<PodFiles, 'names' | 'replaceDurably'>;
  readonly tools: Pick<VolumeTools, 'read' | 'removeFile'>;
}

export class StagedRecords {
  readonly #options: StagedRecordsOptions;
  readonly #records = new Map<string, StagedVolume>();
  #loaded: Promise<void> | undefined;

  constructor(options: StagedRecordsOptions) {
    this.#options = options;
  }

  async all(): Promise<readonly StagedVolume[]> {
    await this.#load();
    return [...this.#records.values()];
  }

  async get(staging: string): Promise<StagedVolume | undefined> {
    await this.#load();
    return this.#records.get(staging);
  }

  /** Whether a pod of this node other than `exceptUid` uses the volume or is about to use it. */
  async isUsed(staging: string, exceptUid?: Uid): Promise<boolean> {
    const mounts = await this.#options.mounts.all();
    return mounts.some((each) => each.kind === 'csi' && each.staging === staging && each.uid !== exceptUid);
  }

  async put(volume: StagedVolume): Promise<void> {
    await this.#load();
    await this.#write(stagedOf(volume));
  }

  async remove(volume: StagedVolume): Promise<void> {
    await this.#options.tools.removeFile(this.#path(volume));
    this.#records.delete(volume.staging);
  }

  async #write(volume: StagedVolume): Promise<void> {
    await this.#options.files.replaceDurably(this.#path(volume), JSON.stringify(volume));
    this.#records.set(volume.staging, volume);
  }

  #path({ staging }: StagedVolume): string {
    return join(this.#options.directories.stagedRecords, sha256Hex(staging));
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
    const { mounts, directories, files, tools } = this.#options;
    for (const file of await files.names(directories.stagedRecords)) {
      const text = await tools.read(join(directories.stagedRecords, file));
      const volume = text === undefined ? undefined : parse(text);
      if (volume !== undefined && sha256Hex(volume.staging) === file) this.#records.set(volume.staging, volume);
    }
    // Older releases recorded the staging path only with the pods.
    for (const each of await mounts.all()) {
      if (each.kind !== 'csi' || each.staging === '' || this.#records.has(each.staging)) continue;
      await this.#write(stagedOf(each));
    }
  }
}

/** Selects the fields of a staged volume from a pod's record, which has more fields. */
const stagedOf = ({ driver, volumeId, name, staging, attachable }: StagedVolume): StagedVolume => ({
  driver,
  volumeId,
  name,
  staging,
  attachable,
});

/** Parses the kubelet's own file, which is replaced atomically. A file emptied by a full disk is ignored. */
function parse(content: string): StagedVolume | undefined {
  try {
    return decodeJson(STAGED, content, 'staged volume');
  } catch {
    return undefined;
  }
}

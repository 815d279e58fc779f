/** Snapshots of this host's store, for requests over the network: lists, saves and reads them. */
import { constants } from 'node:fs';
import { open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { OpenSnapshot, SnapshotFile, SnapshotReport } from '../../kubelet/ports/administration-port.ts';
import type { SnapshotSchedule } from '../../store/administration/schedule.ts';
import { isSnapshotPart, snapshotNameParts } from '../../store/administration/snapshots.ts';

const MAX_FILES = 1000;
const READ_BYTES = 256 * 1024;

export interface SnapshotPlaces {
  readonly directory: string;
  schedule(): Promise<SnapshotSchedule>;
  /** Saves a snapshot in `directory`. Resolves with a description of the file as JSON. */
  save(signal: AbortSignal): Promise<string>;
}

/** Access to the snapshots. At most one snapshot is saved and one is read at a time. */
export class RemoteSnapshots {
  readonly #places: SnapshotPlaces;
  readonly #stopping = new AbortController();
  #saving: Promise<object> | undefined;
  #isReading = false;

  constructor(places: SnapshotPlaces) {
    this.#places = places;
  }

  async report(): Promise<SnapshotReport> {
    const { directory } = this.#places;
    const [schedule, snapshots] = await Promise.all([this.#places.schedule(), this.#list()]);
    return {
      directory,
      ...(schedule.enabled ? { every: schedule.every } : {}),
      keep: schedule.keep,
      ...(schedule.directory === directory ? {} : { scheduledDirectory: schedule.directory }),
      isSaving: this.#saving !== undefined,
      snapshots,
    };
  }

  /** Throws CodedError 'busy' while another snapshot is being saved. */
  async save(): Promise<object> {
    if (this.#saving !== undefined)
      throw new CodedError('busy', 'a snapshot is being saved on this host; wait until it is complete');
    this.#saving = this.#save();
    try {
      return await this.#saving;
    } finally {
      this.#saving = undefined;
    }
  }

  async #save(): Promise<object> {
    const saved: unknown = JSON.parse(await this.#places.save(this.#stopping.signal));
    return typeof saved === 'object' && saved !== null ? saved : {};
  }

  /** Bytes written so far to the newest incomplete snapshot. */
  async savedBytes(): Promise<number> {
    const { directory } = this.#places;
    const parts = (await readdir(directory).catch(() => [])).filter(isSnapshotPart);
    const found = await Promise.all(parts.map((name) => stat(join(directory, name)).catch(() => undefined)));
    const newest = found.reduce((last, each) => ((each?.mtimeMs ?? 0) > (last?.mtimeMs ?? 0) ? each : last), undefined);
    return newest?.size ?? 0;
  }

  /**
   * Opens a listed snapshot without following a symbolic link. The snapshot can be read to its end even if it is
   * removed. Throws CodedErrors 'not-found' and 'busy'.
   */
  async open(name: string): Promise<OpenSnapshot> {
    if (this.#isReading)
      throw new CodedError('busy', 'a snapshot of this host is being downloaded; wait until it is complete');
    this.#isReading = true;
    const close = (): void => {
      this.#isReading = false;
    };
    try {
      const listed = (await this.#list()).find((each) => each.name === name);
      if (listed === undefined) throw missing(name);
      const file = await open(join(this.#places.directory, listed.name), constants.O_RDONLY | constants.O_NOFOLLOW);
      try {
        const { size } = await file.stat();
        // The stream ends at the announced size, even if the file grows.
        const content = file.createReadStream({ end: Math.max(0, size - 1), highWaterMark: READ_BYTES });
        return { name: listed.name, bytes: size, content, close };
      } catch (error) {
        await file.close();
        throw error;
      }
    } catch (error) {
      close();
      if (error instanceof CodedError) throw error;
      throw new CodedError('not-found', `snapshot ${name} cannot be read: ${messageOf(error)}`, { cause: error });
    }
  }

  /** Aborts a save in progress and waits for its end. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#saving?.catch(() => undefined);
  }

  async #list(): Promise<readonly SnapshotFile[]> {
    const { directory } = this.#places;
    const names = await readdir(directory, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
    const files = names.filter((each) => each.isFile() && each.name.endsWith('.db') && !each.name.startsWith('.'));
    const found = await Promise.all(
      files.slice(-MAX_FILES).map(async ({ name }) => {
        const status = await stat(join(directory, name)).catch(() => undefined);
        if (status === undefined) return [];
        const { revision = 0, takenMs = status.mtimeMs } = snapshotNameParts(name) ?? {};
        return [{ name, revision, takenAt: new Date(takenMs).toISOString(), bytes: status.size }];
      }),
    );
    return found
      .flat()
      .sort((a, b) => (a.takenAt < b.takenAt ? 1 : a.takenAt > b.takenAt ? -1 : b.revision - a.revision));
  }
}

const missing = (name: string): CodedError =>
  new CodedError('not-found', `snapshot ${name} does not exist on this host; list the snapshots`);

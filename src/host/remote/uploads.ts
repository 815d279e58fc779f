/**
 * Archives that are uploaded to this host: image archives and update bundles. The body is written to a private file on
 * the file system of the image store; then a child process imports the file. One upload is accepted at a time. The
 * directory is emptied at the start of the host process, so that interrupted uploads leave no files.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, open, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError, isDiskFull, messageOf } from '../../base/errors.ts';
import { bytesText } from '../../base/text/bytes-text.ts';
import type { Upload, UploadLimits } from '../../kubelet/ports/administration-port.ts';

const MAX_BYTES = 16 * 1024 ** 3;
/** Number of copies on the disk at the same time: the archive and its unpacked layers. */
const COPIES = 2;
/** Share of the file system that an upload leaves free. */
const RESERVE = 0.05;
/** Bytes between two checks of the free space. */
const CHECK_BYTES = 64 * 1024 ** 2;

export type ImportedUpload = Pick<Upload, 'kind' | 'name' | 'force'>;

export interface UploadPlaces {
  readonly directory: string;
  readonly maxBytes?: number;
  /** Imports the file. Resolves with the result as JSON text, or rejects with the reason. */
  importFile(file: string, upload: ImportedUpload, signal: AbortSignal): Promise<string>;
  /** Free and total bytes. By default, those of the directory's file system. */
  space?(): Promise<{ readonly free: number; readonly total: number }>;
}

export class RemoteUploads {
  readonly #places: UploadPlaces;
  readonly #maxBytes: number;
  readonly #stopping = new AbortController();
  #running: Promise<object> | undefined;
  #cleaned: Promise<void> | undefined;

  constructor(places: UploadPlaces) {
    this.#places = places;
    this.#maxBytes = places.maxBytes ?? MAX_BYTES;
    this.#cleaned = this.#clean();
  }

  async limits(): Promise<UploadLimits> {
    await this.#prepare();
    return { isBusy: this.#running !== undefined, maxBytes: this.#maxBytes, freeBytes: await this.#freeBytes() };
  }

  /**
   * Receives and imports an archive. Throws CodedErrors 'busy', 'too-large', 'no-space', and 'rejected' with the reason
   * of the import.
   */
  async import(upload: Upload, signal: AbortSignal, onReceived: () => void): Promise<object> {
    if (this.#running !== undefined)
      throw new CodedError('busy', 'another archive is being uploaded to this host; wait until it is imported');
    this.#running = this.#import(upload, AbortSignal.any([signal, this.#stopping.signal]), onReceived);
    try {
      return await this.#running;
    } finally {
      this.#running = undefined;
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running?.catch(() => undefined);
  }

  async #import({ body, bytes, ...upload }: Upload, signal: AbortSignal, onReceived: () => void): Promise<object> {
    await this.#prepare();
    this.#checkSize(bytes ?? 0);
    await this.#checkSpace(bytes ?? 0);
    const file = join(this.#places.directory, `upload-${randomBytes(8).toString('hex')}`);
    try {
      await this.#receive(body, file, bytes, signal);
      onReceived();
      const result: unknown = JSON.parse(await this.#run(file, upload, signal));
      return upload.kind === 'image' ? { images: result } : { bundle: result };
    } finally {
      await rm(file, { force: true });
    }
  }

  async #receive(body: Upload['body'], path: string, bytes: number | undefined, signal: AbortSignal): Promise<void> {
    const file = await open(path, 'wx', 0o600);
    const end = (): void => void body.destroy(new CodedError('rejected', 'the upload was ended'));
    signal.addEventListener('abort', end, { once: true });
    let received = 0;
    let checked = 0;
    try {
      signal.throwIfAborted();
      // The request is not destroyed on an error, so that the client receives the response with the reason.
      for await (const chunk of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        received += chunk.length;
        if (received - checked >= CHECK_BYTES || received > this.#maxBytes) {
          await this.#check(received);
          checked = received;
        }
        await file.appendFile(chunk);
      }
    } catch (error) {
      if (isDiskFull(error)) throw noSpace(0);
      throw error;
    } finally {
      signal.removeEventListener('abort', end);
      await file.close();
    }
    if (received === 0) throw new CodedError('rejected', 'the body is empty; send an archive');
    if (bytes !== undefined && received !== bytes)
      throw new CodedError('rejected', `${received} of ${bytes} bytes were received; upload the archive again`);
  }

  async #check(received: number): Promise<void> {
    this.#checkSize(received);
    // The free space does not include the received bytes, because they are already on the disk.
    await this.#checkSpace(0);
  }

  #checkSize(bytes: number): void {
    if (bytes > this.#maxBytes)
      throw new CodedError(
        'too-large',
        `the archive exceeds ${bytesText(this.#maxBytes)}; copy it to the host and import it there`,
      );
  }

  async #checkSpace(bytes: number): Promise<void> {
    const free = await this.#freeBytes();
    if (free < bytes || free <= 0) throw noSpace(free);
  }

  /** Size of the largest archive that can be imported without using the reserve. */
  async #freeBytes(): Promise<number> {
    const { free, total } = await (this.#places.space?.() ?? this.#space());
    return Math.max(0, Math.floor((free - total * RESERVE) / COPIES));
  }

  async #space(): Promise<{ readonly free: number; readonly total: number }> {
    const { bavail, blocks, bsize } = await statfs(this.#places.directory);
    return { free: bavail * bsize, total: blocks * bsize };
  }

  async #run(file: string, upload: ImportedUpload, signal: AbortSignal): Promise<string> {
    try {
      return await this.#places.importFile(file, upload, signal);
    } catch (error) {
      const reason = messageOf(error).replaceAll(file, 'archive').slice(0, 1000);
      throw new CodedError('rejected', reason, { cause: error });
    }
  }

  async #prepare(): Promise<void> {
    await this.#cleaned;
    await mkdir(this.#places.directory, { recursive: true, mode: 0o700 });
  }

  /** Removes files of an earlier process. If the removal fails, the first upload reports the error. */
  async #clean(): Promise<void> {
    await rm(this.#places.directory, { recursive: true, force: true }).catch(() => undefined);
  }
}

const noSpace = (free: number): CodedError =>
  new CodedError(
    'no-space',
    `the disk of the image store has space for an archive of ${bytesText(free)}; remove unused images`,
  );

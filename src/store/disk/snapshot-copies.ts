import { createReadStream } from 'node:fs';
import { stat, unlink } from 'node:fs/promises';

/** Maximum number of copies of the store on disk. With two, a reader that stops does not block the next snapshot. */
const MAX_COPIES = 2;

export interface SnapshotReader {
  readonly size: number;
  /** Must be read or returned, because the copy is removed afterwards. */
  readonly pieces: AsyncIterable<Uint8Array>;
}

interface Copy {
  readonly path: string;
  readonly size: number;
  readers: number;
}

/** Copy that has not been started, and the requests that wait for it. */
interface NextCopy {
  readonly copy: Promise<Copy>;
  upTo: number;
  readers: number;
}

/**
 * Copies of the store for clients that read snapshots. Each copy has the size of the store, so their number is limited.
 * Requests that wait for the same copy share it: a copy contains everything up to the time at which it was started.
 */
export class SnapshotCopies {
  readonly #make: (upTo: number) => Promise<string>;
  #copies = 0;
  #next: NextCopy | undefined;
  /** Starts the next copy once a copy has been removed. */
  #start: (() => void) | undefined;

  /** `make` copies the store up to an entry to a new file and returns the path. */
  constructor(make: (upTo: number) => Promise<string>) {
    this.#make = make;
  }

  /** Resolves when a copy that was started after this call is complete. */
  async read(upTo: number): Promise<SnapshotReader> {
    const next = this.#next ?? this.#prepare();
    next.upTo = Math.max(next.upTo, upTo);
    next.readers += 1;
    const copy = await next.copy;
    return { size: copy.size, pieces: this.#piecesOf(copy) };
  }

  #prepare(): NextCopy {
    const free = new Promise<void>((resolve) => {
      this.#start = resolve;
    });
    const next = { copy: free.then(() => this.#copy()), upTo: 0, readers: 0 };
    this.#next = next;
    this.#startIfFree();
    return next;
  }

  #startIfFree(): void {
    if (this.#copies >= MAX_COPIES || this.#start === undefined) return;
    this.#copies += 1;
    this.#start();
    this.#start = undefined;
  }

  async #copy(): Promise<Copy> {
    const { upTo = 0, readers = 0 } = this.#next ?? {};
    this.#next = undefined;
    try {
      const path = await this.#make(upTo);
      const { size } = await stat(path);
      return { path, size, readers };
    } catch (error) {
      this.#removed();
      throw error;
    }
  }

  async *#piecesOf(copy: Copy): AsyncGenerator<Uint8Array> {
    try {
      for await (const piece of createReadStream(copy.path, { highWaterMark: 256 << 10 })) yield piece as Buffer;
    } finally {
      copy.readers -= 1;
      if (copy.readers === 0) await unlink(copy.path).finally(() => this.#removed());
    }
  }

  #removed(): void {
    this.#copies -= 1;
    this.#startIfFree();
  }
}

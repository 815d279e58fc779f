import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { loadRecords } from './records.ts';

const LEAST_BYTES = 8 << 20;
/** The disk counts as full below this share of free space, for small file systems. */
const LEAST_SHARE = 1 / 16;
const LEAST_FILES = 256;

/**
 * Directories of sandboxes or containers, by id. They are on disk. Those of the control plane are in memory (below
 * `/run`) if they are created while the disk is full, so that a host with a full disk comes back after a reboot.
 */
export class StateDirectories {
  readonly #disk: string;
  readonly #memory: string;
  readonly #inMemory = new Set<string>();

  constructor(roots: { readonly disk: string; readonly memory: string }) {
    this.#disk = roots.disk;
    this.#memory = roots.memory;
  }

  of(id: string): string {
    return join(this.#inMemory.has(id) ? this.#memory : this.#disk, id);
  }

  isInMemory(id: string): boolean {
    return this.#inMemory.has(id);
  }

  /** Returns the directory for a new id. It does not exist yet. */
  async choose(id: string, mayUseMemory: boolean): Promise<string> {
    if (mayUseMemory && (await isFull(this.#disk))) this.#inMemory.add(id);
    return this.of(id);
  }

  /** All readable records, and the ids of directories without one. */
  async load<R extends { readonly id: string }>(): Promise<{
    readonly records: readonly R[];
    readonly broken: readonly string[];
  }> {
    const [disk, memory] = await Promise.all([loadRecords<R>(this.#disk), loadRecords<R>(this.#memory)]);
    for (const id of [...memory.records.map((record) => record.id), ...memory.broken]) this.#inMemory.add(id);
    return { records: [...disk.records, ...memory.records], broken: [...disk.broken, ...memory.broken] };
  }

  forget(id: string): void {
    this.#inMemory.delete(id);
  }
}

async function isFull(directory: string): Promise<boolean> {
  const { blocks, bfree, bsize, files, ffree } = await statfs(directory);
  return bfree * bsize < Math.min(LEAST_BYTES, blocks * bsize * LEAST_SHARE) || (files > 0 && ffree < LEAST_FILES);
}

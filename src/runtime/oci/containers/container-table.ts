import { RuntimeError } from '../../port.ts';
import { type ContainerRecord, type RuntimePaths, saveEnd, saveFirstRecord, saveRecord } from './records.ts';
import { StateDirectories } from './state-directories.ts';

export const hasEnded = (record: ContainerRecord): boolean => record.finishedAtMs > 0;

/** All containers of the runtime: their records in memory and on disk. */
export class ContainerTable {
  readonly directories: StateDirectories;
  readonly #records = new Map<string, ContainerRecord>();

  constructor(paths: RuntimePaths) {
    this.directories = new StateDirectories({ disk: paths.containers, memory: paths.memoryContainers });
  }

  /** Reads the records; returns the ids of containers without one, whose creation was interrupted. */
  async load(): Promise<readonly string[]> {
    const { records, broken } = await this.directories.load<ContainerRecord>();
    for (const record of records) this.#records.set(record.id, record);
    return broken;
  }

  /** Throws RuntimeError 'not-found'. */
  get(id: string): ContainerRecord {
    const record = this.#records.get(id);
    if (record === undefined) throw new RuntimeError('not-found', `container ${id} does not exist`);
    return record;
  }

  find(id: string): ContainerRecord | undefined {
    return this.#records.get(id);
  }

  all(): readonly ContainerRecord[] {
    return [...this.#records.values()];
  }

  bundle(id: string): string {
    return this.directories.of(id);
  }

  async save(record: ContainerRecord): Promise<void> {
    const save = this.#records.has(record.id) ? saveRecord : saveFirstRecord;
    await save(this.bundle(record.id), record);
    this.#records.set(record.id, record);
  }

  /** Like `save`, for a container that has ended. Returns false if the disk is full and only memory has the record. */
  async saveEnd(record: ContainerRecord): Promise<boolean> {
    const saved = await saveEnd(this.bundle(record.id), record);
    this.#records.set(record.id, record);
    return saved;
  }

  delete(id: string): void {
    this.#records.delete(id);
    this.directories.forget(id);
  }
}

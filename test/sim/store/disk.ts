import { CodedError } from '../../../src/base/errors.ts';
import type {
  LogBatch,
  LogSize,
  LogState,
  PeerUrls,
  SnapshotHead,
  StoredEntry,
  StoredHardState,
  StoreIdentity,
  StoreLog,
} from '../../../src/store/disk/port.ts';
import { Violation } from './checkers.ts';
import type { Life } from './process.ts';
import { StoreImage } from './store-image.ts';
import type { World } from './world.ts';

const READ_MS = 0.2;

/**
 * Disk of a member, which outlives the process. An operation in progress during a power failure either takes effect
 * completely or not at all.
 */
export class Disk {
  image = new StoreImage();
  incoming: { readonly id: string; image: StoreImage } | undefined;
  /** Factor by which the disk is slower than usual. */
  slowness = 1;
  full = false;
  /** Whether the reserve for a full disk is used up. */
  ballastUsed = false;
  stuckUntil = 0;
  /** Number of writes to the disk. */
  commits = 0;
  /** Whether the file is damaged, which the next read detects. */
  damaged = false;
  /** Highest entry kind that the installed build supports. */
  level = Number.POSITIVE_INFINITY;
  /** Peer URLs, which are stored outside of the file. */
  others: PeerUrls | undefined;
  readonly name: string;
  readonly #world: World;
  #busyUntil = 0;
  /** Pending operations, oldest first. The first one has started. */
  #under: Array<{ readonly begins: number; readonly effect: () => void }> = [];
  #life = 0;

  constructor(name: string, world: World) {
    this.name = name;
    this.#world = world;
  }

  /** Runs operations one after another. `effect` takes place atomically at the end. */
  perform<T>(life: Life, costMs: number, effect: () => T): Promise<T> {
    const { timeline } = this.#world;
    const mine = this.#life;
    const begins = Math.max(timeline.nowMs, this.#busyUntil, this.stuckUntil);
    this.#busyUntil = begins + costMs * this.slowness;
    return new Promise((resolve, reject) => {
      let settle = (): void => {};
      const operation = {
        begins,
        effect: () => {
          try {
            const value = effect();
            settle = () => resolve(value);
          } catch (error) {
            // A violation found by the simulation must not be handled by the program.
            if (error instanceof Violation) throw error;
            settle = () => reject(error);
          }
        },
      };
      this.#under.push(operation);
      timeline.after(this.#busyUntil - timeline.nowMs, () => {
        if (mine !== this.#life) return;
        this.#under.shift();
        operation.effect();
        life.run(settle);
      });
    });
  }

  flushMs(): number {
    return this.#world.random.between(0.5, 4);
  }

  crash(): void {
    const { timeline, random } = this.#world;
    this.#life += 1;
    const first = this.#under[0];
    if (first !== undefined && first.begins <= timeline.nowMs && random.chance(0.5)) first.effect();
    this.#under = [];
    this.#busyUntil = 0;
    this.stuckUntil = 0;
  }

  /** Empties the file, which was set aside or deleted. */
  clear(): void {
    this.image = new StoreImage();
    this.incoming = undefined;
    this.damaged = false;
  }

  /** Deletes all data. */
  wipe(): void {
    this.clear();
    this.others = undefined;
  }
}

function corrupt({ name }: Disk): CodedError {
  return new CodedError('corrupt', `the file of ${name} is damaged`);
}

const copied = (entries: readonly StoredEntry[]): StoredEntry[] =>
  entries.map((entry) => ({ ...entry, body: Buffer.from(entry.body) }));

/** Implements the program's view of the disk. */
export class SimulatedLog implements StoreLog {
  readonly #disk: Disk;
  readonly #life: Life;
  readonly #world: World;
  #onFatal: (error: Error) => void = () => {};

  constructor(disk: Disk, life: Life, world: World) {
    this.#disk = disk;
    this.#life = life;
    this.#world = world;
  }

  #read<T>(effect: () => T): Promise<T> {
    return this.#disk.perform(this.#life, READ_MS, effect);
  }

  /** Reads from the file, which may be damaged. */
  #readFile<T>(effect: () => T): Promise<T> {
    return this.#read(() => {
      if (this.#disk.damaged) throw corrupt(this.#disk);
      return effect();
    }).catch((error: unknown) => {
      if (error instanceof CodedError && error.code === 'corrupt') this.#onFatal(error);
      throw error;
    });
  }

  #write<T>(effect: () => T): Promise<T> {
    return this.#disk.perform(this.#life, this.#disk.flushMs(), effect).catch((error: unknown) => {
      if (error instanceof CodedError && error.code !== 'no-space') this.#onFatal(error);
      throw error;
    });
  }

  async open(onFatal: (error: Error) => void): Promise<LogState> {
    this.#onFatal = onFatal;
    const { bug } = this.#world;
    return this.#read(() => {
      if (this.#disk.damaged) throw corrupt(this.#disk);
      const state = this.#disk.image.state();
      return bug?.found?.(state, this.#world) ?? state;
    });
  }

  async initialise(identity: StoreIdentity, first: LogBatch): Promise<void> {
    await this.#write(() => {
      const { image } = this.#disk;
      image.identity = identity;
      image.apply({ entries: copied(first.entries), discards: [] });
      if (first.reserved !== undefined) image.reserved = first.reserved;
      if (first.hardState !== undefined) image.hardState = first.hardState;
      if (first.base !== undefined) image.base = first.base;
      if (first.applied !== undefined) image.setApplied(first.applied);
    });
  }

  async load(upTo: number, rows: (rows: readonly StoredEntry[]) => void): Promise<void> {
    for (let after = 0; ; ) {
      const some = await this.#readFile(() =>
        copied(this.#disk.image.rows.filter((row) => row.revision > after && row.index <= upTo).slice(0, 20)),
      );
      if (some.length === 0) return;
      const { bug } = this.#world;
      rows(bug?.loaded === undefined ? some : some.map(bug.loaded));
      after = some.at(-1)?.revision ?? after;
    }
  }

  commit(batch: LogBatch): Promise<{ readonly full: boolean }> {
    const disk = this.#disk;
    const { checkers, bug } = this.#world;
    const mine: LogBatch = { ...batch, entries: copied(batch.entries) };
    const effect = (): { readonly full: boolean } => {
      const grows = mine.entries.length > 0;
      if (disk.full && grows && disk.ballastUsed) throw new CodedError('no-space', 'no space left on the device');
      const full = disk.full && grows;
      if (full) disk.ballastUsed = true;
      disk.commits += 1;
      checkers.understood(disk.name, mine.entries, disk.level);
      checkers.appended(disk.name, mine.entries, disk.image);
      disk.image.apply(mine);
      return { full };
    };
    if (bug?.diskLies === true) {
      void this.#write(effect).catch(() => {});
      return this.#read(() => ({ full: false }));
    }
    return this.#write(effect);
  }

  reserveBytes(): number {
    return 0;
  }

  recoverSpace(): Promise<boolean> {
    return this.#read(() => {
      if (!this.#disk.full) this.#disk.ballastUsed = false;
      return !this.#disk.full;
    });
  }

  entries(from: number, maxBytes: number): Promise<readonly StoredEntry[]> {
    return this.#readFile(() => copied(this.#disk.image.entries(from, maxBytes)));
  }

  read(revisions: readonly number[]): Promise<ReadonlyArray<Uint8Array | undefined>> {
    const wanted = [...revisions];
    return this.#readFile(() => {
      const rows = new Map(this.#disk.image.rows.map((row) => [row.revision, row.body]));
      return wanted.map((revision) => {
        const body = rows.get(revision);
        return body === undefined ? undefined : Buffer.from(body);
      });
    });
  }

  rows(after: number, upTo: number): Promise<readonly StoredEntry[]> {
    const few = 1 + this.#world.random.below(12);
    return this.#readFile(() =>
      copied(this.#disk.image.rows.filter((row) => row.revision > after && row.revision <= upTo).slice(0, few)),
    );
  }

  hash(revision: number): Promise<number> {
    return this.#readFile(() => revision);
  }

  size(): Promise<LogSize> {
    return this.#read(() => {
      const inUseBytes = this.#world.bug?.takesNoRoom ? 0 : this.#disk.image.bytes;
      return { bytes: inUseBytes, inUseBytes };
    });
  }

  scrub(): Promise<number> {
    return this.#readFile(() => 0);
  }

  quarantine(): Promise<string> {
    const disk = this.#disk;
    const { trace, checkers, bug, timeline } = this.#world;
    return this.#write(() => {
      const { identity, documents, base, hardState } = disk.image;
      disk.clear();
      trace.count('put aside');
      if (identity === undefined) return 'aside';
      const isFirst = checkers.putAside(identity.memberId.toString(16), timeline.nowMs);
      if (bug?.keepsIdentity && isFirst) {
        Object.assign(disk.image, { identity, base, hardState, applied: base.index });
        disk.image.documents.set('cluster', documents.get('cluster') ?? new Uint8Array());
      }
      return 'aside';
    });
  }

  savePeers(peerUrls: PeerUrls): Promise<void> {
    return this.#write(() => {
      this.#disk.others = peerUrls;
    });
  }

  savedPeers(): Promise<PeerUrls | undefined> {
    return this.#read(() => this.#disk.others);
  }

  changeSchema(): Promise<void> {
    return Promise.resolve();
  }

  defragment(): Promise<void> {
    return this.#write(() => {});
  }

  async snapshot(): Promise<never> {
    throw new CodedError('unsupported', 'nobody asks for a file here');
  }

  receive(id: string): Promise<number> {
    const disk = this.#disk;
    return this.#write(() => {
      if (disk.incoming?.id !== id) disk.incoming = { id, image: new StoreImage() };
      else if (disk.incoming.image.lastRevision > 0) this.#world.trace.count('snapshot resumed');
      return disk.incoming.image.lastRevision;
    });
  }

  received(id: string, rows: readonly StoredEntry[]): Promise<void> {
    const mine = copied(rows);
    return this.#write(() => {
      const { incoming } = this.#disk;
      if (incoming?.id !== id) throw new CodedError('not-receiving', `no snapshot ${id} is being received`);
      for (const row of mine) incoming.image.append(row);
    });
  }

  install(id: string, head: SnapshotHead, hardState: StoredHardState): Promise<LogState> {
    const disk = this.#disk;
    return this.#write(() => {
      const { incoming, image } = disk;
      if (incoming?.id !== id) throw new CodedError('not-receiving', `no snapshot ${id} is being received`);
      if (image.identity === undefined) throw new CodedError('unsupported', 'a store without an identity');
      if (head.position.index < image.applied) throw new CodedError('io', 'a snapshot takes back what was applied');
      incoming.image.install({ clusterId: head.clusterId, memberId: image.identity.memberId }, head, hardState);
      disk.image = incoming.image;
      disk.incoming = undefined;
      this.#world.trace.count('installed snapshot');
      return disk.image.state();
    });
  }

  async close(): Promise<void> {}
}

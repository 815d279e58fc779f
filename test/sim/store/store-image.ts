import { CodedError } from '../../../src/base/errors.ts';
import { splitEvents } from '../../../src/store/core/messages/event.ts';
import type {
  AppliedChanges,
  Discard,
  LeaseRecord,
  LogBatch,
  LogPosition,
  LogState,
  SnapshotHead,
  StoredEntry,
  StoredHardState,
  StoreIdentity,
} from '../../../src/store/disk/port.ts';

const ROW_BYTES = 30;

/** Contents of a member's file: a simple model of `StoreLog`'s contract. */
export class StoreImage {
  identity: StoreIdentity | undefined;
  hardState: StoredHardState = { term: 0, vote: undefined, commit: 0 };
  base: LogPosition = { index: 0, term: 0 };
  applied = 0;
  compacted = 0;
  reserved = 0;
  readonly leases = new Map<bigint, LeaseRecord>();
  readonly documents = new Map<string, Uint8Array>();
  /** Sorted by revision. */
  rows: StoredEntry[] = [];
  /** Entries without a revision, sorted by index. */
  others: StoredEntry[] = [];

  /** Shallow copy of the current state; entries are immutable. */
  copy(): StoreImage {
    const copy = new StoreImage();
    const { identity, hardState, base, applied, compacted, reserved } = this;
    Object.assign(copy, { identity, hardState, base, applied, compacted, reserved });
    for (const [id, lease] of this.leases) copy.leases.set(id, lease);
    for (const [name, value] of this.documents) copy.documents.set(name, value);
    copy.rows = [...this.rows];
    copy.others = [...this.others];
    return copy;
  }

  get lastIndex(): number {
    return Math.max(this.base.index, this.rows.at(-1)?.index ?? 0, this.others.at(-1)?.index ?? 0);
  }

  /** Last revision that the store may have made visible. Its row may be compacted. */
  get reaches(): number {
    return Math.max(this.lastRevision, this.compacted);
  }

  /** Approximate size on disk. */
  get bytes(): number {
    return this.rows.reduce((sum, { body }) => sum + body.length + ROW_BYTES, 0);
  }

  get lastRevision(): number {
    return this.rows.at(-1)?.revision ?? 0;
  }

  state(): LogState {
    const { identity, hardState, base, applied, compacted, reserved } = this;
    const documents = new Map([...this.documents].map(([name, value]) => [name, Buffer.from(value)] as const));
    return { identity, hardState, base, applied, compacted, reserved, leases: [...this.leases.values()], documents };
  }

  apply(batch: LogBatch): void {
    const first = batch.entries[0];
    if (first !== undefined) this.#append(first, batch.entries);
    for (const discard of batch.discards) this.#discard(discard);
    if (batch.hardState !== undefined) this.hardState = batch.hardState;
    if (batch.applied !== undefined) this.setApplied(batch.applied);
    if (batch.base !== undefined) this.setBase(batch.base);
    if (batch.reserved !== undefined) this.reserved = batch.reserved;
  }

  #append(first: StoredEntry, entries: readonly StoredEntry[]): void {
    if (first.index > this.lastIndex + 1)
      throw new CodedError('io', `hole in the log: ${first.index} behind ${this.lastIndex}`);
    if (first.index <= this.applied)
      throw new CodedError('io', `entry ${first.index} is overwritten though ${this.applied} is applied`);
    this.rows = this.rows.filter((row) => row.index < first.index);
    this.others = this.others.filter((entry) => entry.index < first.index);
    for (const entry of entries) this.append(entry);
  }

  append(entry: StoredEntry): void {
    if (entry.revision === 0) this.others.push(entry);
    else {
      if (entry.revision <= this.lastRevision)
        throw new CodedError('io', `UNIQUE constraint failed: revision ${entry.revision} behind ${this.lastRevision}`);
      this.rows.push(entry);
    }
  }

  #discard({ revision, keys }: Discard): void {
    const at = this.rows.findIndex((row) => row.revision === revision);
    const row = this.rows[at];
    if (row === undefined) return;
    if (row.index > this.base.index)
      throw new CodedError('io', `row ${revision} is discarded though the log begins at ${this.base.index + 1}`);
    const gone = new Set(keys);
    const left = Buffer.concat(
      keys === undefined
        ? []
        : splitEvents(row.body)
            .filter((event) => !gone.has(event.key))
            .map((event) => event.field),
    );
    if (left.length === 0) this.rows.splice(at, 1);
    else this.rows[at] = { ...row, body: left };
  }

  setApplied(applied: AppliedChanges): void {
    if (applied.index < this.applied) throw new CodedError('io', `applied goes back to ${applied.index}`);
    if (applied.index > this.lastIndex) throw new CodedError('io', `applied ${applied.index} is not in the log`);
    this.applied = applied.index;
    this.compacted = applied.compacted;
    for (const lease of applied.leasesGranted) this.leases.set(lease.id, lease);
    for (const id of applied.leasesRevoked) this.leases.delete(id);
    for (const [name, value] of applied.documents) this.documents.set(name, Buffer.from(value));
  }

  setBase(base: LogPosition): void {
    if (base.index > this.applied) throw new CodedError('io', `base ${base.index} is not applied`);
    const at = [...this.rows, ...this.others].find((entry) => entry.index === base.index);
    if (at !== undefined && at.term !== base.term) throw new CodedError('io', `base ${base.index} has another term`);
    this.base = base;
    this.others = this.others.filter((entry) => entry.index > base.index);
  }

  entries(from: number, maxBytes: number): StoredEntry[] {
    if (from <= this.base.index) return [];
    const log = [...this.rows, ...this.others].filter((entry) => entry.index >= from).sort((a, b) => a.index - b.index);
    const found: StoredEntry[] = [];
    let bytes = 0;
    for (const entry of log) {
      if (entry.index !== from + found.length || (bytes >= maxBytes && found.length > 0)) break;
      found.push(entry);
      bytes += entry.body.length + 16;
    }
    return found;
  }

  /** Builds a member's store from received rows. */
  install(identity: StoreIdentity, head: SnapshotHead, hardState: StoredHardState): void {
    const { position, compacted, leases, documents } = head;
    this.identity = identity;
    this.hardState = hardState;
    this.base = position;
    this.reserved = head.revision;
    this.setApplied({ index: position.index, compacted, leasesGranted: leases, leasesRevoked: [], documents });
  }
}

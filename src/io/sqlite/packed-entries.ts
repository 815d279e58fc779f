/** Entries in a few pieces of memory that threads hand over instead of copying. */
import type { EntryKind, StoredEntry } from '../../components/etcd/port.ts';

export interface PackedEntries {
  readonly indexes: Float64Array<ArrayBuffer>;
  readonly terms: Float64Array<ArrayBuffer>;
  readonly revisions: Float64Array<ArrayBuffer>;
  readonly kinds: Uint8Array<ArrayBuffer>;
  readonly lengths: Uint32Array<ArrayBuffer>;
  /** Few have one: pairs of position and lease. */
  readonly leases: ReadonlyArray<readonly [position: number, lease: bigint]>;
  readonly data: Uint8Array<ArrayBuffer>;
}

export function pack(entries: readonly StoredEntry[]): PackedEntries {
  const count = entries.length;
  let bytes = 0;
  for (const entry of entries) bytes += entry.body.length;
  const leases: Array<readonly [number, bigint]> = [];
  const packed: PackedEntries = {
    indexes: new Float64Array(count),
    terms: new Float64Array(count),
    revisions: new Float64Array(count),
    kinds: new Uint8Array(count),
    lengths: new Uint32Array(count),
    leases,
    data: new Uint8Array(bytes),
  };
  let position = 0;
  for (let i = 0; i < count; i += 1) {
    const entry = entries[i] as StoredEntry;
    packed.indexes[i] = entry.index;
    packed.terms[i] = entry.term;
    packed.revisions[i] = entry.revision;
    packed.kinds[i] = entry.kind;
    packed.lengths[i] = entry.body.length;
    if (entry.lease !== 0n) leases.push([i, entry.lease]);
    packed.data.set(entry.body, position);
    position += entry.body.length;
  }
  return packed;
}

export function unpack(packed: PackedEntries): StoredEntry[] {
  const { indexes, terms, revisions, kinds, lengths, data } = packed;
  const leases = new Map(packed.leases);
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const entries: StoredEntry[] = [];
  for (let i = 0, position = 0; i < indexes.length; i += 1) {
    const end = position + (lengths[i] as number);
    entries.push({
      index: indexes[i] as number,
      term: terms[i] as number,
      kind: kinds[i] as EntryKind,
      revision: revisions[i] as number,
      lease: leases.get(i) ?? 0n,
      body: bytes.subarray(position, end),
    });
    position = end;
  }
  return entries;
}

/** The memory that can be handed over. */
export function memoryOf({ indexes, terms, revisions, kinds, lengths, data }: PackedEntries): ArrayBuffer[] {
  return [indexes.buffer, terms.buffer, revisions.buffer, kinds.buffer, lengths.buffer, data.buffer];
}

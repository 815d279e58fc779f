/** Entries packed into two buffers, which are much cheaper to pass between threads than many objects. */
import type { EntryKind, LogBatch, StoredEntry } from './port.ts';

export interface PackedEntries {
  /** Index, term, revision, kind and body length of each entry. */
  readonly numbers: Float64Array<ArrayBuffer>;
  /** Pairs of position and lease, for the few entries with a lease. */
  readonly leases: ReadonlyArray<readonly [position: number, lease: bigint]>;
  readonly data: Uint8Array<ArrayBuffer>;
}

export type CommitBody = Omit<LogBatch, 'entries'> & { readonly entries: PackedEntries };

export const NUMBERS = 5;
/** Transferring memory has a fixed cost; copying is cheaper below this size. */
const WORTH_HANDING_OVER = 64 << 10;

export function pack(entries: readonly StoredEntry[]): PackedEntries {
  let bytes = 0;
  for (const entry of entries) bytes += entry.body.length;
  const leases: Array<readonly [number, bigint]> = [];
  const numbers = new Float64Array(entries.length * NUMBERS);
  const data = new Uint8Array(bytes);
  let position = 0;
  for (let i = 0; i < entries.length; i += 1) {
    const entry = entries[i] as StoredEntry;
    const { lease, body } = entry;
    putNumbers(numbers, i * NUMBERS, entry);
    if (lease !== 0n) leases.push([i, lease]);
    data.set(body, position);
    position += body.length;
  }
  return { numbers, leases, data };
}

export function putNumbers(numbers: Float64Array, at: number, entry: StoredEntry): void {
  numbers[at] = entry.index;
  numbers[at + 1] = entry.term;
  numbers[at + 2] = entry.revision;
  numbers[at + 3] = entry.kind;
  numbers[at + 4] = entry.body.length;
}

export function unpack({ numbers, leases: pairs, data }: PackedEntries): StoredEntry[] {
  const leases = new Map(pairs);
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const entries: StoredEntry[] = [];
  for (let i = 0, position = 0; i * NUMBERS < numbers.length; i += 1) {
    const at = i * NUMBERS;
    const end = position + (numbers[at + 4] as number);
    entries.push({
      index: numbers[at] as number,
      term: numbers[at + 1] as number,
      kind: numbers[at + 3] as EntryKind,
      revision: numbers[at + 2] as number,
      lease: leases.get(i) ?? 0n,
      body: bytes.subarray(position, end),
    });
    position = end;
  }
  return entries;
}

/** Index of the first entry; undefined if there is none. */
export function firstIndex({ numbers }: PackedEntries): number | undefined {
  return numbers[0];
}

/** Buffers that are worth transferring instead of copying. */
export function memoryOf({ numbers, data }: PackedEntries): ArrayBuffer[] {
  return data.length < WORTH_HANDING_OVER ? [] : [numbers.buffer, data.buffer];
}

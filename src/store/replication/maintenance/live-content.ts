/** Export and import of a store's current keys and leases, without its history and membership. */
import { EventType, encodedValue, encodePutEvent, type PutEvent, splitEvents } from '../../core/messages/event.ts';
import { EntryKind, type LeaseRecord, type LogState, type StoredEntry, type StoreLog } from '../../disk/port.ts';
import { hex } from '../../membership/cluster.ts';
import { bootstrapped, type NewCluster, type Restored } from '../../recovery/quorum-loss.ts';
import { decodeCommand } from '../peers/entry-codec.ts';

export interface LiveKey {
  readonly key: string;
  readonly value: Uint8Array;
  /** Lease of the key. 0n when there is none or it has ended. */
  readonly lease: bigint;
}

export interface Content {
  readonly revision: number;
  readonly keys: number;
  /** Leases with keys attached. */
  readonly leases: ReadonlyArray<{ readonly id: bigint; readonly ttlSeconds: number }>;
  /** Sorted by mod revision. */
  live(): AsyncIterable<LiveKey>;
}

/** Content of an opened store at its last revision. Throws CodedError 'corrupt'. */
export async function contentOf(state: LogState, storage: StoreLog): Promise<Content> {
  const written = new Map<string, number>();
  const used = new Set<bigint>();
  let revision = state.compacted;
  for await (const row of rowsOf(storage)) {
    revision = row.revision;
    for (const { key, type, lease } of splitEvents(row.body)) {
      if (type === EventType.delete) written.delete(key);
      else written.set(key, row.revision);
      if (lease !== 0n) used.add(lease);
    }
  }
  const granted = await leasesOf(state, storage);
  async function* live(): AsyncGenerator<LiveKey> {
    for await (const row of rowsOf(storage)) {
      for (const { key, kv, lease } of splitEvents(row.body)) {
        if (written.get(key) !== row.revision) continue;
        yield { key, value: encodedValue(kv), lease: granted.has(lease) ? lease : 0n };
      }
    }
  }
  return {
    revision,
    keys: written.size,
    leases: [...granted].filter(([id]) => used.has(id)).map(([id, ttlSeconds]) => ({ id, ttlSeconds })),
    live,
  };
}

async function* rowsOf(storage: StoreLog): AsyncGenerator<StoredEntry> {
  for (let after = 0; ; ) {
    const rows = await storage.rows(after, Number.MAX_SAFE_INTEGER);
    const last = rows.at(-1);
    if (last === undefined) return;
    yield* rows;
    after = last.revision;
  }
}

/** Leases from the tables, updated from the end of the log, because the tables may lag behind the log. */
async function leasesOf(state: LogState, storage: StoreLog): Promise<ReadonlyMap<bigint, number>> {
  const leases = new Map(state.leases.map(({ id, ttlSeconds }) => [id, ttlSeconds]));
  for (let from = Math.max(state.applied, state.base.index) + 1; ; ) {
    const entries = await storage.entries(from, 4 << 20);
    const last = entries.at(-1);
    if (last === undefined) return leases;
    for (const { kind, body, lease } of entries) {
      if (kind === EntryKind.revoke) leases.delete(lease);
      if (kind !== EntryKind.command) continue;
      const command = decodeCommand(body);
      if (command.type === 'grant') leases.set(command.id, command.ttlSeconds);
      else if (command.type === 'revoke') leases.delete(command.id);
    }
    from = last.index + 1;
  }
}

/** The content of another store at one revision. */
export interface Foreign {
  readonly revision: number;
  readonly leases: readonly LeaseRecord[];
  /** Sorted by mod revision. */
  readonly keys: AsyncIterable<PutEvent>;
}

const BATCH_BYTES = 1 << 20;

/**
 * Fills a new, opened store with the content of another store, as if the other store had been compacted at its current
 * revision. Keys, values, versions, create and mod revisions and leases are kept, so that clients can continue from
 * their revision. Throws CodedError.
 */
export async function importInto(
  storage: StoreLog,
  { revision, leases, keys }: Foreign,
  wanted: Omit<NewCluster, 'bumpRevision'>,
): Promise<Restored & { readonly keys: number }> {
  const { identity, document } = bootstrapped(wanted);
  const term = 1;
  const none = { compacted: 0, leasesGranted: [], leasesRevoked: [], documents: new Map<string, Uint8Array>() };
  const start = { index: 1, term };
  const empty = { entries: [], discards: [] };
  const hardState = { term, vote: undefined, commit: 1 };
  await storage.initialise(identity, { ...empty, hardState, base: start, applied: { ...none, index: 1 } });
  const rows = new Rows(storage, term);
  let count = 0;
  for await (const put of keys) {
    await rows.add(put);
    count += 1;
  }
  const index = await rows.end();
  await storage.commit({
    ...empty,
    hardState: { term, vote: undefined, commit: index },
    applied: {
      ...none,
      index,
      compacted: revision,
      leasesGranted: leases,
      documents: new Map([['cluster', document]]),
    },
    base: { index, term },
    reserved: revision,
  });
  return { clusterId: hex(identity.clusterId), memberId: hex(identity.memberId), revision, keys: count };
}

/** Combines puts of one revision into one row and writes rows by the megabyte. */
class Rows {
  readonly #storage: StoreLog;
  readonly #term: number;
  #index = 1;
  #revision = 0;
  #events: Buffer[] = [];
  #entries: StoredEntry[] = [];
  #bytes = 0;

  constructor(storage: StoreLog, term: number) {
    this.#storage = storage;
    this.#term = term;
  }

  async add(put: PutEvent): Promise<void> {
    if (put.modRevision !== this.#revision) {
      this.#closeRow();
      this.#revision = put.modRevision;
      if (this.#bytes >= BATCH_BYTES) await this.#write();
    }
    const { field } = encodePutEvent(put);
    this.#events.push(field);
    this.#bytes += field.length;
  }

  /** Writes the last row and returns its index. */
  async end(): Promise<number> {
    this.#closeRow();
    await this.#write();
    return this.#index;
  }

  #closeRow(): void {
    if (this.#events.length === 0) return;
    this.#index += 1;
    const body = Buffer.concat(this.#events);
    const row = { index: this.#index, term: this.#term, kind: EntryKind.revision, revision: this.#revision };
    this.#entries.push({ ...row, lease: 0n, body });
    this.#events = [];
  }

  async #write(): Promise<void> {
    if (this.#entries.length > 0) await this.#storage.commit({ entries: this.#entries, discards: [] });
    this.#entries = [];
    this.#bytes = 0;
  }
}

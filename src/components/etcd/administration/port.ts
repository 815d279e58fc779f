/** Ports of store administration: a client of the store's API and access to snapshot files and data directories. */
import type { RangeRequest, WireKeyValue, WireRangeResponse } from '../../../api/etcd/kv.ts';
import type { StoreLog } from '../port.ts';

export interface EtcdMember {
  /** Hex, as etcdctl shows it. */
  readonly id: string;
  /** Empty until the member has started once. */
  readonly name: string;
  readonly peerUrls: readonly string[];
  readonly clientUrls: readonly string[];
  readonly learner: boolean;
}

export interface EtcdStatus {
  readonly memberId: string;
  readonly clusterId: string;
  readonly revision: number;
  readonly version: string;
  readonly dbBytes: number;
  readonly dbInUseBytes: number;
  /** Hex; '' without one. */
  readonly leader: string;
  readonly raftTerm: number;
  readonly raftIndex: number;
  readonly raftApplied: number;
  readonly errors: readonly string[];
}

export interface EtcdLease {
  readonly id: bigint;
  readonly grantedSeconds: number;
  readonly remainingSeconds: number;
}

/** How far the log of a member of this project reaches; other stores do not implement the call. */
export interface EtcdLogEnd {
  readonly memberId: string;
  readonly name: string;
  readonly term: number;
  readonly lastIndex: number;
  readonly lastTerm: number;
  readonly commit: number;
  /** The last revision that is known to be committed. */
  readonly revision: number;
  /** The last revision in the log, committed or not. */
  readonly lastRevision: number;
}

/**
 * A client of the store's Cluster, Maintenance, Lease and KV services. Every call throws a CodedError: 'unavailable'
 * with the endpoint after the timeout, 'unsupported', or 'refused' with the store's own message.
 */
export interface EtcdAdmin {
  /** `linearizable`: confirmed by a quorum; otherwise from the serving member's own configuration. */
  members(linearizable: boolean, timeoutMs?: number): Promise<readonly EtcdMember[]>;
  /** Returns the resulting member list too: until the new member has started, a quorum may be missing. */
  addMember(
    peerUrls: readonly string[],
    learner: boolean,
  ): Promise<{ readonly added: EtcdMember; readonly members: readonly EtcdMember[] }>;
  removeMember(id: string): Promise<void>;
  /** The member is reached at these URLs from now on. */
  updateMember(id: string, peerUrls: readonly string[]): Promise<void>;
  promoteMember(id: string): Promise<void>;
  status(timeoutMs?: number): Promise<EtcdStatus>;
  logEnd(timeoutMs?: number): Promise<EtcdLogEnd>;
  /** Raises the level of the log to the one that all members support, see log-level.ts. */
  raiseLevel(timeoutMs?: number): Promise<{ readonly level: number; readonly supported: number }>;
  /** Streams a snapshot to `piece`; the last piece is the SHA-256 of the others. Resolves with the store's revision. */
  snapshot(piece: (bytes: Buffer) => void): Promise<number>;
  range(request: Partial<RangeRequest> & { readonly key: string }): Promise<WireRangeResponse>;
  /** Values of keys at a revision, in the order of `keys`; missing keys are omitted. */
  getAll(keys: readonly string[], revision: number): Promise<readonly WireKeyValue[]>;
  /** Puts all keys in one transaction and overwrites existing ones. Resolves with the revision. */
  putAll(
    puts: ReadonlyArray<{ readonly key: string; readonly value: Uint8Array; readonly lease: bigint }>,
  ): Promise<number>;
  leases(): Promise<readonly EtcdLease[]>;
  grantLease(id: bigint, ttlSeconds: number): Promise<void>;
  close(): void;
}

/** The endpoints of a store and a client factory for them. */
export interface StoreAccess {
  readonly endpoints: readonly string[];
  /** A client of these endpoints, by default of all, with the same certificates. */
  open(endpoints?: readonly string[]): EtcdAdmin;
}

export interface SnapshotSummary {
  /** The last revision. */
  readonly revision: number;
  readonly compacted: number;
  /** Keys that exist at `revision`. */
  readonly keys: number;
  /** Rows of history. */
  readonly revisions: number;
  /** CRC-32 over the rows, in hex: equal to HashKV of a store with the same history. */
  readonly hash: string;
  readonly clusterId: string;
  readonly memberId: string;
}

/** Snapshot files and data directories, provided from `io/sqlite`. */
export interface StoreFiles {
  /** The log in `directory`, not opened yet. `isCopy`: the directory holds a copied database file and nothing else. */
  openLog(directory: string, isCopy?: boolean): Promise<StoreLog>;
  /**
   * Checks the file header; `live` accepts a store's own database file too. Throws CodedError 'unreadable',
   * 'unsupported'.
   */
  checkKind(path: string, live?: boolean): void;
  /** The last revision of a snapshot. Throws CodedError 'corrupt', 'unsupported' with the file. */
  revisionOf(path: string): Promise<number>;
  /** Checks the checksum of every row. Throws as `revisionOf`. */
  summarize(path: string): Promise<SnapshotSummary>;
  /** The last revision of a damaged database whose row is intact; undefined when no row can be read. Read-only. */
  lastIntactRevision(path: string): Promise<number | undefined>;
}

/** Ports of store administration: a client of the store's API and access to snapshot files and data directories. */
import type { RangeRequest, WireKeyValue, WireRangeResponse } from '../core/messages/kv.ts';
import type { StoreLog } from '../disk/port.ts';

export interface EtcdMember {
  /** Member ID in hex, as etcdctl shows it. */
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
  /** Member ID in hex, or '' without a leader. */
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

/** Position of the last entry in a member's log. etcd does not implement the call. */
export interface EtcdLogEnd {
  readonly memberId: string;
  readonly name: string;
  readonly term: number;
  readonly lastIndex: number;
  readonly lastTerm: number;
  readonly commit: number;
  /** Last revision known to be committed. */
  readonly revision: number;
  /** The last revision in the log, committed or not. */
  readonly lastRevision: number;
}

/** Levels of the cluster's log, see log-level.ts. */
export interface LogLevelReport {
  readonly level: number;
  readonly supported: number;
}

/**
 * A client of the store's Cluster, Maintenance, Lease and KV services. Every call throws a CodedError: 'unavailable'
 * with the endpoint after the timeout, 'unsupported', or 'refused' with the store's own message.
 */
export interface EtcdAdmin {
  /** Members of the cluster. The read is linearizable, so it requires a quorum. */
  members(timeoutMs?: number): Promise<readonly EtcdMember[]>;
  /** Members in the configuration of the serving member, which may be outdated. Requires no quorum. */
  localMembers(timeoutMs?: number): Promise<readonly EtcdMember[]>;
  /** Also returns the resulting member list, because a quorum may be missing until the new member has started. */
  addMember(
    peerUrls: readonly string[],
    learner: boolean,
  ): Promise<{ readonly added: EtcdMember; readonly members: readonly EtcdMember[] }>;
  removeMember(id: string): Promise<void>;
  /** Sets the URLs under which the member is reachable. */
  updateMember(id: string, peerUrls: readonly string[]): Promise<void>;
  promoteMember(id: string): Promise<void>;
  status(timeoutMs?: number): Promise<EtcdStatus>;
  logEnd(timeoutMs?: number): Promise<EtcdLogEnd>;
  /** Raises the log level to the highest level that all members support, see log-level.ts. */
  raiseLevel(timeoutMs?: number): Promise<LogLevelReport>;
  /** Log level as this member knows it. */
  level(timeoutMs?: number): Promise<LogLevelReport>;
  /**
   * Streams a snapshot to `piece`. `remaining`: bytes of the database that follow. The last piece is the SHA-256 of the
   * preceding pieces. Resolves with the store's revision.
   */
  snapshot(piece: (bytes: Buffer, remaining: number) => void): Promise<number>;
  range(request: Partial<RangeRequest> & { readonly key: string }): Promise<WireRangeResponse>;
  /** Values of keys at a revision, in the order of `keys`; missing keys are omitted. */
  getAll(keys: readonly string[], revision: number): Promise<readonly WireKeyValue[]>;
  /** Puts all keys in one transaction and overwrites existing ones. Resolves with the revision. */
  putAll(
    puts: ReadonlyArray<{ readonly key: string; readonly value: Uint8Array; readonly lease: bigint }>,
  ): Promise<number>;
  /** Removes the history before `revision`. */
  compact(revision: number): Promise<void>;
  /** Returns free pages of the serving member to its file system. */
  defragment(timeoutMs?: number): Promise<void>;
  /** Clears the NOSPACE alarms of all members; a member above its quota raises it again at the next write. */
  clearNoSpace(): Promise<void>;
  leases(): Promise<readonly EtcdLease[]>;
  grantLease(id: bigint, ttlSeconds: number): Promise<void>;
  close(): void;
}

/** The endpoints of a store and a client factory for them. */
export interface StoreAccess {
  readonly endpoints: readonly string[];
  /** Creates a client with the same certificates for these endpoints. Default: all endpoints. */
  open(endpoints?: readonly string[]): EtcdAdmin;
}

export interface SnapshotSummary {
  /** Last revision. */
  readonly revision: number;
  readonly compacted: number;
  /** Number of keys at `revision`. */
  readonly keys: number;
  /** Number of rows of history. */
  readonly revisions: number;
  /** CRC-32 over the rows, in hex: equal to HashKV of a store with the same history. */
  readonly hash: string;
  readonly clusterId: string;
  readonly memberId: string;
}

export interface SnapshotPosition {
  readonly revision: number;
  readonly clusterId: string;
}

/** Snapshot files and data directories, provided from `store/disk`. */
export interface StoreFiles {
  /** Returns the unopened log in `directory`. `isCopy`: the directory contains only a copied database file. */
  openLog(directory: string, options?: { readonly isCopy?: boolean }): Promise<StoreLog>;
  /**
   * Checks the file header. `live` also accepts a store's own database file. Throws CodedError 'unreadable',
   * 'unsupported'.
   */
  checkKind(path: string, live?: boolean): void;
  /** Last revision and cluster of a snapshot. Throws CodedError 'corrupt', 'unsupported' with the file. */
  positionOf(path: string): Promise<SnapshotPosition>;
  /** Checks the checksum of every row. Throws like `positionOf`. */
  summarize(path: string): Promise<SnapshotSummary>;
  /** Last revision of a damaged database whose row is intact. Undefined when no row can be read. Read-only. */
  lastIntactRevision(path: string): Promise<number | undefined>;
}

/** What a store requires and what it offers to the composition. */

import type { Clock, RandomSource } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { ProcessFacts } from '../../base/process-facts.ts';
import type { RpcListener } from '../../io/grpc/port.ts';
import type { PasswordHasher } from './auth/password.ts';
import type { Tokens } from './auth/tokens.ts';
import type { GossipHints } from './gossip-port.ts';
import type { InitialCluster } from './membership/initial-cluster.ts';
import type { FormerCluster } from './membership/join.ts';
import type { DialPeer, StoreLog } from './port.ts';
import type { RequestLimits } from './services/kv-service.ts';

export interface EtcdServerDeps {
  /** The durable store: `createSqliteLog` of io/sqlite. Opened by `start`, closed by `stop`. */
  readonly storage: StoreLog;
  /** The client listener: `createRpcListener` of io/grpc. */
  readonly listener: RpcListener;
  readonly clock: Clock;
  readonly log: Log;
  /** This member's name in `member list`. */
  readonly name: string;
  /** What `member list` shows as client addresses. */
  readonly clientUrls: readonly string[];
  readonly peerUrls?: readonly string[];
  /** How other members connect and are reached; undefined: a single-member store without peers. */
  readonly peers?: { readonly listener: RpcListener; readonly dial: DialPeer };
  /** The initial members; this member alone by default. */
  readonly initialCluster?: InitialCluster;
  /**
   * Present: as etcd's `--force-new-cluster`, this member becomes the only one and keeps its data. Called when that is
   * on disk.
   */
  readonly forceNewCluster?: () => Promise<void>;
  /**
   * The fallback of a single member whose data are damaged; undefined: it does not start until an operator intervenes.
   */
  readonly fallback?: Fallback;
  /** The cluster that this store has belonged to: a missing store is not replaced by an empty one. */
  readonly formerCluster?: FormerCluster;
  /** The state before an update that this host has rolled back; resolves with undefined when there was none. */
  readonly beforeUpdate?: () => Promise<Fallback | undefined>;
  /**
   * etcd's `--heartbeat-interval` and `--election-timeout`, in milliseconds; with `adapts` the latter is the initial
   * value.
   */
  readonly timing?: { readonly heartbeatMs: number; readonly electionMs: number; readonly adapts?: boolean };
  /** File size from which writes are rejected, as etcd's `--quota-backend-bytes`; undefined: no quota. */
  readonly quotaBytes?: number;
  /** For the metrics of the process; undefined: the figures of `/proc` are not shown. */
  readonly processFacts?: ProcessFacts;
  readonly compaction?: AutoCompaction;
  readonly strictReconfigCheck?: boolean;
  /** Learners that a cluster may have: 1 by default, 16 at most. */
  readonly maxLearners?: number;
  readonly limits?: RequestLimits;
  /** The interval of `progress_notify`; ten minutes by default. */
  readonly progressNotifyMs?: number;
  /** Size of fragments of large watch responses; etcd's request limit plus 512 KiB by default. */
  readonly fragmentBytes?: number;
  /** etcd's `--enable-grpc-gateway`: JSON over HTTP; true by default. */
  readonly jsonGateway?: boolean;
  /** Concurrent calls of the gateway, over all its clients; unlimited by default. */
  readonly gatewayStreams?: number;
  /** Adds histograms of call durations to the metrics. Default false. */
  readonly extensiveMetrics?: boolean;
  /**
   * etcd's `--experimental-warning-apply-duration` and `-unary-request-duration`, in milliseconds: slower operations
   * are logged, slow applies are counted too.
   */
  readonly slow?: { readonly applyMs: number; readonly requestMs: number };
  /** How often members compare their stores, as etcd's `--experimental-corrupt-check-time`; twice a day by default. */
  readonly compareMs?: number;
  /** As etcd's `--experimental-initial-corrupt-check`: compares with the other members before serving. */
  readonly compareAtStart?: boolean;
  /** What the ring of hosts reports about the other members; closed by `stop`. */
  readonly gossip?: GossipHints;
  /**
   * Source of randomness: election timeouts, ids of leases and runs. Node's own by default; simulations pass a seeded
   * one.
   */
  readonly random?: Pick<RandomSource, 'random' | 'bytes'>;
  /** Runs a callback after the requests of this turn have been processed; `setImmediate` by default. */
  readonly defer?: (run: () => void) => void;
  /** Bounds on raft's queues and caches, and how many entries the log keeps for slow followers. */
  readonly bounds?: Partial<StoreBounds>;
  /** Bytes of current values cached in memory; 64 MiB by default. */
  readonly cacheBytes?: number;
  /** Relaxed writes other than heartbeats are on disk after this long at most; 1000 ms by default. */
  readonly flushIntervalMs?: number;
  /** How often remaining times of long leases are checkpointed; every five minutes by default, as with etcd. */
  readonly leaseCheckpointMs?: number;
  /** The token provider of auth: simple tokens by default, see `createTokens`. */
  readonly tokens?: Tokens;
  /** etcd's `--client-cert-auth`: with auth on, the certificate's common name is the user of a call without a token. */
  readonly clientCertAuth?: boolean;
  /** etcd's `--bcrypt-cost`, for password hashes; 10 by default. */
  readonly bcryptCost?: number;
  /** The password hasher; scrypt by default. */
  readonly hasher?: PasswordHasher;
  /**
   * The log level that this member supports, see log-level.ts; lower than this build's: it behaves as an older build.
   */
  readonly logLevel?: number;
  /** The log level rises on request only, as on hosts whose updates may be rolled back. Default false. */
  readonly levelOnRequest?: boolean;
  /**
   * This member listens, a quorum answers, and its name and client URLs are published. Called again after a recovery.
   */
  readonly onPublished?: () => void;
  /** The disk failed in a way that cannot be retried safely: the error was logged, the process has to exit. */
  readonly onFatal: (error: Error) => void;
}

/** An earlier state of the store, kept elsewhere. */
export interface Fallback {
  /**
   * Moves the closed, damaged store aside and restores the newest earlier state that is intact. Nothing has changed
   * when it throws: CodedErrors with the reason. `lastSeen`: the last revision known to have been visible, 0 when none
   * is.
   */
  goBack(lastSeen: number): Promise<WentBack>;
}

export interface WentBack {
  /** Where the damaged store is kept. */
  readonly kept: string;
  readonly snapshot: string;
  /** The revision of that snapshot: later revisions are lost. */
  readonly from: number;
  /** The last revision that is known to be lost; undefined when nothing of the damaged store could be read. */
  readonly to: number | undefined;
  /** New revisions start behind this one, so that no client mistakes the restored history for the one it knows. */
  readonly revision: number;
}

/** In bytes unless noted otherwise. */
export interface StoreBounds {
  readonly maxAppendBytes: number;
  readonly maxCommittedBytes: number;
  readonly maxInflightMessages: number;
  readonly maxInflightBytes: number;
  readonly maxUncommittedBytes: number;
  readonly maxCachedBytes: number;
  /** A number of reads. */
  readonly maxPendingReads: number;
  /** A number of entries. */
  readonly keepEntries: number;
}

/** As etcd's `--auto-compaction-mode` and `-retention`. */
export type AutoCompaction =
  | { readonly mode: 'periodic'; readonly retentionMs: number }
  | { readonly mode: 'revision'; readonly revisions: number };

export interface EtcdServer {
  /** Opens the log, loads the index and listens. Throws CodedError with a one-line reason. */
  start(): Promise<{ readonly host: string; readonly port: number }>;
  /** Answers what is under way, makes everything durable and releases the data directory. */
  stop(): Promise<void>;
}

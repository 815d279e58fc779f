/** Dependencies of a store, and its interface to the composition. */

import type { ProcessFacts } from '../../base/linux/process-facts.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, RandomSource } from '../../base/time/clock.ts';
import type { RpcListener } from '../../wire/grpc/port.ts';
import type { PasswordHasher } from '../auth/password.ts';
import type { Tokens } from '../auth/tokens.ts';
import type { DialPeer, StoreLog } from '../disk/port.ts';
import type { GossipHints } from '../gossip-port.ts';
import type { InitialCluster } from '../membership/initial-cluster.ts';
import type { FormerCluster } from '../membership/join.ts';
import type { RequestLimits } from '../services/kv-service.ts';

export interface EtcdServerDeps {
  /** The durable store: `createSqliteLog` of store/disk. Opened by `start`, closed by `stop`. */
  readonly storage: StoreLog;
  /** The client listener: `createRpcListener` of wire/grpc. */
  readonly listener: RpcListener;
  readonly clock: Clock;
  readonly log: Log;
  /** This member's name in `member list`. */
  readonly name: string;
  /** Client addresses that `member list` shows. */
  readonly clientUrls: readonly string[];
  readonly peerUrls?: readonly string[];
  /** Peer connections of this member. Undefined: a single-member store without peers. */
  readonly peers?: { readonly listener: RpcListener; readonly dial: DialPeer };
  /** Initial members. Default: only this member. */
  readonly initialCluster?: InitialCluster;
  /**
   * Present for etcd's `--force-new-cluster`: this member becomes the only member and keeps its data. The function is
   * called when the new membership is on disk.
   */
  readonly forceNewCluster?: () => Promise<void>;
  /**
   * Fallback of a single member whose data is damaged. Undefined: such a member does not start until an operator
   * intervenes.
   */
  readonly fallback?: Fallback;
  /**
   * Cluster to which this store has belonged. If set, a missing store is an error and is not replaced by an empty
   * store.
   */
  readonly formerCluster?: FormerCluster;
  /** State before an update that this host has rolled back. Resolves with undefined when no update was rolled back. */
  readonly beforeUpdate?: () => Promise<Fallback | undefined>;
  /**
   * etcd's `--heartbeat-interval` and `--election-timeout`, in milliseconds. With `adapts`, the election timeout is
   * only an initial value.
   */
  readonly timing?: { readonly heartbeatMs: number; readonly electionMs: number; readonly adapts?: boolean };
  /** File size from which writes are rejected, as etcd's `--quota-backend-bytes`. Undefined: no quota. */
  readonly quotaBytes?: number;
  /** Source of process metrics. Undefined: the figures of `/proc` are not shown. */
  readonly processFacts?: ProcessFacts;
  readonly compaction?: AutoCompaction;
  readonly strictReconfigCheck?: boolean;
  /** Maximum number of learners in a cluster. Default 1, maximum 16. */
  readonly maxLearners?: number;
  readonly limits?: RequestLimits;
  /** Interval of `progress_notify`. Default ten minutes. */
  readonly progressNotifyMs?: number;
  /** Size of fragments of large watch responses. Default: etcd's request limit plus 512 KiB. */
  readonly fragmentBytes?: number;
  /** etcd's `--enable-grpc-gateway`: JSON over HTTP. Default true. */
  readonly jsonGateway?: boolean;
  /** Maximum number of concurrent gateway calls of all clients. Default: unlimited. */
  readonly gatewayStreams?: number;
  /** Adds histograms of call durations to the metrics. Default false. */
  readonly extensiveMetrics?: boolean;
  /**
   * etcd's `--experimental-warning-apply-duration` and `-unary-request-duration`, in milliseconds. Slower operations
   * are logged, and slow applies are also counted.
   */
  readonly slow?: { readonly applyMs: number; readonly requestMs: number };
  /**
   * Interval at which members compare their stores, as etcd's `--experimental-corrupt-check-time`. Default: twice a
   * day.
   */
  readonly compareMs?: number;
  /** Like etcd's `--experimental-initial-corrupt-check`: compares with the other members before serving. */
  readonly compareAtStart?: boolean;
  /** Reports of the host ring about the other members. `stop` closes it. */
  readonly gossip?: GossipHints;
  /**
   * Source of randomness for election timeouts and the IDs of leases and runs. Default: the source of Node.js.
   * Simulations pass a seeded source.
   */
  readonly random?: Pick<RandomSource, 'random' | 'bytes'>;
  /** Runs a callback after the requests of this event loop turn have been processed. Default: `setImmediate`. */
  readonly defer?: (run: () => void) => void;
  /** Limits of raft's queues and caches, and the number of entries that the log keeps for slow followers. */
  readonly bounds?: Partial<StoreBounds>;
  /** Bytes of current values cached in memory. Default 64 MiB. */
  readonly cacheBytes?: number;
  /** Maximum delay until relaxed writes other than heartbeats are on disk. Default 1000 ms. */
  readonly flushIntervalMs?: number;
  /** Interval at which remaining times of long leases are checkpointed. Default five minutes, as in etcd. */
  readonly leaseCheckpointMs?: number;
  /** Token provider of auth. Default: simple tokens, see `createTokens`. */
  readonly tokens?: Tokens;
  /** etcd's `--client-cert-auth`: with auth on, the certificate's common name is the user of a call without a token. */
  readonly clientCertAuth?: boolean;
  /** etcd's `--bcrypt-cost` for password hashes. Default 10. */
  readonly bcryptCost?: number;
  /** Password hasher. Default: scrypt. */
  readonly hasher?: PasswordHasher;
  /**
   * Log level that this member supports, see log-level.ts. With a lower level than the level of this build, the member
   * behaves like an older build.
   */
  readonly logLevel?: number;
  /** Whether the log level rises only on request, as on hosts whose updates may be rolled back. Default false. */
  readonly levelOnRequest?: boolean;
  /**
   * Called when this member listens, a quorum responds, and its name and client URLs are published. Called again after
   * a recovery.
   */
  readonly onPublished?: () => void;
  /**
   * Called after the disk failed in a way that cannot be retried safely. The error was logged, and the process has to
   * exit.
   */
  readonly onFatal: (error: Error) => void;
}

/** Source of an earlier state of the store. */
export interface Fallback {
  /**
   * Moves the closed, damaged store aside and restores the newest intact earlier state. Throws CodedErrors with the
   * reason, without any change. `lastSeen`: the last revision known to have been visible, or 0.
   */
  fallBack(lastSeen: number): Promise<FallbackResult>;
}

export interface FallbackResult {
  /** Path at which the damaged store is kept. */
  readonly kept: string;
  readonly snapshot: string;
  /** Revision of that snapshot. Later revisions are lost. */
  readonly from: number;
  /** Last revision that is known to be lost. Undefined when the damaged store could not be read. */
  readonly to: number | undefined;
  /**
   * Revision above which new revisions start, so that no client confuses the restored history with the former history.
   */
  readonly revision: number;
}

/** Limits of a store, in bytes unless noted otherwise. */
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

/** Like etcd's `--auto-compaction-mode` and `-retention`. */
export type AutoCompaction =
  | { readonly mode: 'periodic'; readonly retentionMs: number }
  | { readonly mode: 'revision'; readonly revisions: number };

export interface EtcdServer {
  /** Opens the log, loads the index and listens. Throws CodedError with a one-line reason. */
  start(): Promise<{ readonly host: string; readonly port: number }>;
  /** Completes requests in progress, makes everything durable and releases the data directory. */
  stop(): Promise<void>;
}

/**
 * `hyperedge etcd`: etcd's v3 contract on a log of revisions. See `EtcdServerDeps` for what it is given; the composition hands in
 * `io/sqlite` as the log and `io/grpc` as the listener.
 */
import type { Clock, RandomSource } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Tokens } from './auth/auth-tokens.ts';
import type { PasswordHasher } from './auth/password.ts';
import type { GossipHints } from './gossip-port.ts';
import type { InitialCluster } from './membership/bootstrap.ts';
import type { DialPeer, RpcListener, StoreLog } from './port.ts';
import type { RequestLimits } from './services/kv-service.ts';

export interface EtcdServerDeps {
  /** Where everything is kept: `createSqliteLog` of io/sqlite. Opened by `start`, closed by `stop`. */
  readonly storage: StoreLog;
  /** Where clients come in: `createRpcListener` of io/grpc. */
  readonly listener: RpcListener;
  readonly clock: Clock;
  readonly log: Log;
  /** This member's name in `member list`. */
  readonly name: string;
  /** What `member list` shows as client addresses. */
  readonly clientUrls: readonly string[];
  readonly peerUrls?: readonly string[];
  /** How other members come in and are reached; without it this member stays alone. */
  readonly peers?: { readonly listener: RpcListener; readonly dial: DialPeer };
  /** Who is there at the beginning; this member alone by default. */
  readonly initialCluster?: InitialCluster;
  /** Present: as etcd's `--force-new-cluster`, this member becomes the whole cluster and keeps its data. Called when that is on disk. */
  readonly forceNewCluster?: () => Promise<void>;
  /** What a member that is alone goes back to when its data are damaged; undefined: it does not start until somebody has looked. */
  readonly fallback?: Fallback;
  /** etcd's `--heartbeat-interval` and `--election-timeout`, in milliseconds; with `adapts` the latter is only what it begins with. */
  readonly timing?: { readonly heartbeatMs: number; readonly electionMs: number; readonly adapts?: boolean };
  /** Bytes of the file from which on nothing more is written, as etcd's `--quota-backend-bytes`; undefined: no quota. */
  readonly quotaBytes?: number;
  readonly compaction?: AutoCompaction;
  readonly strictReconfigCheck?: boolean;
  /** Learners that a cluster may have: 1 by default, 16 at most. */
  readonly maxLearners?: number;
  readonly limits?: RequestLimits;
  /** How often a watch that asked for it hears that nothing has happened; ten minutes by default. */
  readonly progressNotifyMs?: number;
  /** Answers to watches that allow it come in fragments of this; what etcd takes for a request, and 512 KiB, by default. */
  readonly fragmentBytes?: number;
  /** etcd's `--enable-grpc-gateway`: JSON over HTTP; true by default. */
  readonly jsonGateway?: boolean;
  /** Calls that the gateway has under way at once, of all its clients; any number by default. */
  readonly gatewayStreams?: number;
  /** etcd's `--experimental-warning-apply-duration` and `-unary-request-duration`, in milliseconds: what takes longer is said, the former counted too. */
  /** Metrics also tell how long calls take. Default false. */
  readonly extensiveMetrics?: boolean;
  readonly slow?: { readonly applyMs: number; readonly requestMs: number };
  /** How often members compare their stores, as etcd's `--experimental-corrupt-check-time`; by default twice a day. */
  readonly compareMs?: number;
  /** As etcd's `--experimental-initial-corrupt-check`: compare with the others before serving. */
  readonly compareAtStart?: boolean;
  /** What the ring of hosts tells of the other members; ended by `stop`. */
  readonly gossip?: GossipHints;
  /** Where chance comes from: election timeouts, ids of leases and of runs. Node's own by default; a simulation has one that repeats. */
  readonly random?: Pick<RandomSource, 'random' | 'bytes'>;
  /** Runs something when what has arrived in this turn has been looked at; `setImmediate` by default. */
  readonly defer?: (run: () => void) => void;
  /** Bounds on what raft keeps waiting and in memory, and how many entries the log keeps for those who are a little behind. */
  readonly bounds?: Partial<StoreBounds>;
  /** Bytes of current values kept in memory; 64 MiB by default. */
  readonly cacheBytes?: number;
  /** Relaxed writes reach the disk after this at the latest; 1000 ms by default. */
  readonly flushIntervalMs?: number;
  /** Leases with more than this left are written down so often; five minutes by default, as with etcd. */
  readonly leaseCheckpointMs?: number;
  /** What clients get for their passwords once auth is on: simple tokens by default, see `createTokens`. */
  readonly tokens?: Tokens;
  /** etcd's `--client-cert-auth`: with auth on, a client without a token is whom its certificate names. */
  readonly clientCertAuth?: boolean;
  /** etcd's `--bcrypt-cost`, for the hashes of passwords; 10 by default. */
  readonly bcryptCost?: number;
  /** What makes those hashes; scrypt by default. */
  readonly hasher?: PasswordHasher;
  /** Which kinds of entries this member knows, see log-level.ts; less than this build does: it behaves as an older one. */
  readonly logLevel?: number;
  /** This member listens, a quorum answers, and the cluster knows its name and where its clients find it. Again after a rebuild. */
  readonly onPublished?: () => void;
  /** The disk failed in a way that cannot be repeated safely: log has said so, the process has to end. */
  readonly onFatal: (error: Error) => void;
}

/** An earlier state of the store, kept elsewhere. */
export interface Fallback {
  /**
   * Puts the closed, damaged store aside and the newest earlier state that is whole in its place. Nothing has changed when it throws: CodedErrors
   * saying why there is none. `lastSeen`: the last revision that is known to have been shown, 0 when none is.
   */
  goBack(lastSeen: number): Promise<WentBack>;
}

export interface WentBack {
  /** Where the damaged store is kept. */
  readonly kept: string;
  readonly snapshot: string;
  /** The revision of that snapshot: what came after it is lost. */
  readonly from: number;
  /** The last revision that is known to be lost; undefined when nothing of the damaged store could be read. */
  readonly to: number | undefined;
  /** Revisions go on behind this one, so that no client takes the restored history for the one it knows. */
  readonly revision: number;
}

/** Bytes, but for those that say otherwise. */
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

export { createTokens } from './auth/auth-tokens.ts';
export { lostOf } from './recovery/recovery.ts';
export { createEtcdServer } from './server.ts';

/**
 * `/metrics` with etcd's names, for existing dashboards and alerts. Parts of the store count events in `EtcdMetrics`.
 * Replication state is read when metrics are scraped. Source: etcd's metrics documentation.
 */

import type { ProcessFacts } from '../../../base/linux/process-facts.ts';
import type { Log } from '../../../base/log.ts';
import { doubling, Histogram } from '../../../base/metrics/histogram.ts';
import { MetricsText } from '../../../base/metrics/metrics-text.ts';
import type { Clock } from '../../../base/time/clock.ts';
import type { TxnRequest } from '../../core/messages/kv.ts';
import type { DecidedRevision } from '../../core/mvcc/machine.ts';
import { isDelete } from '../../core/mvcc/version.ts';
import type { LogSize } from '../../disk/port.ts';
import type { Engine } from '../../replication/engine.ts';
import type { CompactionTimes } from '../../replication/maintenance/compactor.ts';
import type { WatchService } from '../../watch/watch-service.ts';
import type { LeaseCounts } from '../lease-service.ts';
import { CLUSTER_VERSION, ETCD_VERSION } from '../version.ts';
import { LimitedWarning } from './limited-warning.ts';
import type { RpcMetrics } from './rpc-metrics.ts';

/** etcd's buckets for disk operations: 1 ms to 8 s. */
const diskBuckets = (): Histogram => new Histogram(doubling(0.001, 14));

/** etcd's names of key operations. */
const OPERATIONS = ['Range', 'Put', 'DeleteRange', 'Txn'] as const;
type Operation = (typeof OPERATIONS)[number];
const applyBuckets = (): Histogram => new Histogram(doubling(0.0001, 20));
const applyFigures = (): Readonly<Record<Operation, Histogram>> => ({
  Range: applyBuckets(),
  Put: applyBuckets(),
  DeleteRange: applyBuckets(),
  Txn: applyBuckets(),
});

/** A single put or delete is a transaction with one operation and no condition. */
function operationOf({ compares, success }: TxnRequest): Operation {
  const [only] = success;
  if (only === undefined || success.length > 1 || compares.length > 0) return 'Txn';
  return only.kind === 'put' ? 'Put' : only.kind === 'delete' ? 'DeleteRange' : 'Txn';
}

/** Metrics that the parts of the store update. */
export class EtcdMetrics {
  readonly walFsyncSeconds = diskBuckets();
  readonly backendCommitSeconds = diskBuckets();
  readonly defragSeconds = new Histogram(doubling(0.1, 13));
  readonly snapshotSeconds = new Histogram(doubling(0.01, 17));
  readonly hashSeconds = new Histogram(doubling(0.01, 15));
  readonly hashRevisionSeconds = new Histogram(doubling(0.01, 15));
  readonly #applies = { succeeded: applyFigures(), failed: applyFigures() };
  readonly indexPauseMs = new Histogram(doubling(0.5, 14));
  readonly compactionPauseMs = new Histogram(doubling(1, 13));
  readonly compactionMs = new Histogram(doubling(100, 14));
  compactedRows = 0;
  /** Milliseconds since 1970, or 0 before the first compaction since the start. */
  lastCompactionMs = 0;
  readonly compaction: CompactionTimes = {
    indexed: (ms) => this.indexPauseMs.observe(ms),
    removed: (rows, ms) => {
      this.compactedRows += rows;
      this.compactionPauseMs.observe(ms);
    },
    finished: (ms) => {
      this.compactionMs.observe(ms);
      this.lastCompactionMs = this.#clock.nowMs();
    },
  };
  defragsUnderWay = 0;
  learnersPromoted = 0;
  proposalsFailed = 0;
  slowApplies = 0;
  slowReadIndexes = 0;
  readIndexesFailed = 0;
  heartbeatSendFailures = 0;
  healthSuccesses = 0;
  healthFailures = 0;
  puts = 0;
  deletes = 0;
  putBytes = 0;
  leaderChanges = 0;
  #leader: string | undefined;
  readonly #slowMs: number;
  readonly #slowApply: LimitedWarning;
  readonly #lateHeartbeat: LimitedWarning;
  readonly #clock: Clock;

  /** `slowMs`: slower operations are counted and logged. */
  constructor(slowMs: number, log: Log, clock: Clock) {
    this.#slowMs = slowMs;
    this.#clock = clock;
    this.#slowApply = new LimitedWarning(log, clock, 'apply request took too long');
    const late = 'leader failed to send out heartbeat on time; took too long, leader is overloaded';
    this.#lateHeartbeat = new LimitedWarning(log, clock, late);
  }

  /** Records the current leader, if there is one. */
  leaderSeen(leader: string | undefined): void {
    if (leader !== undefined && leader !== this.#leader) this.leaderChanges += 1;
    this.#leader = leader;
  }

  /**
   * Records the duration of a commit, which includes its flush. etcd reports the flush of the write-ahead log and the
   * commit of the backend separately.
   */
  written(ms: number): void {
    this.walFsyncSeconds.observe(ms / 1000);
    this.backendCommitSeconds.observe(ms / 1000);
  }

  /**
   * Records the duration of applying entries or of reading a range. Source: etcd server/etcdserver/util.go,
   * warnOfExpensiveRequest.
   */
  applied(ms: number): void {
    if (ms <= this.#slowMs) return;
    this.slowApplies += 1;
    this.#slowApply.warn(ms, { ms: Math.round(ms), expected: this.#slowMs });
  }

  read(ms: number): void {
    this.#applies.succeeded.Range.observe(ms / 1000);
    this.applied(ms);
  }

  decided(request: TxnRequest, success: boolean, ms: number): void {
    this.#applies[success ? 'succeeded' : 'failed'][operationOf(request)].observe(ms / 1000);
  }

  /** Key operations since the start, and their durations. */
  *applies(): Generator<readonly [labels: Readonly<Record<string, string>>, Histogram]> {
    for (const success of [true, false])
      for (const op of OPERATIONS) {
        const histogram = this.#applies[success ? 'succeeded' : 'failed'][op];
        if (histogram.count > 0) yield [{ op, success: String(success), version: 'v3' }, histogram];
      }
  }

  lateHeartbeat(to: string, ms: number): void {
    this.heartbeatSendFailures += 1;
    this.#lateHeartbeat.warn(ms, { to, exceeded: Math.round(ms) });
  }

  published(revisions: readonly DecidedRevision[]): void {
    for (const { changes } of revisions) {
      for (const { version } of changes) {
        if (isDelete(version)) this.deletes += 1;
        else {
          this.puts += 1;
          this.putBytes += version.size;
        }
      }
    }
  }
}

export interface MetricsSources {
  readonly engine: Engine;
  readonly watches: WatchService;
  readonly leases: LeaseCounts;
  readonly rpc: RpcMetrics;
  readonly metrics: EtcdMetrics;
  readonly size: () => Promise<LogSize>;
  /** Revision of users, roles and permissions. */
  readonly authRevision: () => number;
  /** 0 means no quota. */
  readonly quotaBytes: number;
  /** Undefined: the figures of `/proc` are not shown. */
  readonly processFacts: ProcessFacts | undefined;
}

export async function showMetrics(sources: MetricsSources): Promise<string> {
  const text = new MetricsText();
  showServer(text, sources);
  showStore(text, sources, await sources.size());
  showLeases(text, sources.leases);
  sources.rpc.show(text);
  await showProcess(text, sources.processFacts);
  return text.toString();
}

function showServer(text: MetricsText, sources: MetricsSources): void {
  const { metrics, engine } = sources;
  const { replica, pendingProposals, identity } = engine;
  const { commit } = replica.raft.status();
  const flag = (value: boolean): number => (value ? 1 : 0);
  const labelled = (labels: Readonly<Record<string, string>>) => [{ labels, value: 1 }];
  text.gauge(
    'etcd_cluster_version',
    'The version of the cluster, the minimum of its members.',
    labelled({ cluster_version: CLUSTER_VERSION }),
  );
  text.gauge('etcd_server_version', 'The etcd API version that is served.', labelled({ server_version: ETCD_VERSION }));
  text.gauge(
    'etcd_server_id',
    'The ID of the member.',
    labelled({ server_id: BigInt.asUintN(64, identity.memberId).toString(16) }),
  );
  text.gauge('etcd_server_has_leader', 'Whether a leader exists.', flag(replica.leader !== undefined));
  text.gauge('etcd_server_is_leader', 'Whether this member is the leader.', flag(replica.leads));
  text.gauge(
    'etcd_server_is_learner',
    'Whether this member is a learner.',
    flag(replica.conf.learners.includes(replica.id)),
  );
  text.counter('etcd_server_leader_changes_seen_total', 'Leader changes seen.', metrics.leaderChanges);
  text.gauge('etcd_server_proposals_committed_total', 'Proposals committed.', commit);
  text.gauge('etcd_server_proposals_applied_total', 'Proposals applied.', replica.applied);
  text.gauge('etcd_server_proposals_pending', 'Proposals waiting to be committed.', pendingProposals);
  text.counter('etcd_server_proposals_failed_total', 'Proposals that failed.', metrics.proposalsFailed);
  text.histograms(
    'etcd_server_apply_duration_seconds',
    'Duration of reading or deciding a request, without waiting for the disk.',
    metrics.applies(),
  );
  text.counter('etcd_server_slow_apply_total', 'Applies that took longer than expected.', metrics.slowApplies);
  text.counter('etcd_server_slow_read_indexes_total', 'Read indexes that were slow.', metrics.slowReadIndexes);
  text.counter('etcd_server_read_indexes_failed_total', 'Read indexes that failed.', metrics.readIndexesFailed);
  text.counter('etcd_server_heartbeat_send_failures_total', 'Heartbeats sent late.', metrics.heartbeatSendFailures);
  text.counter('etcd_server_health_success', 'Health checks that succeeded.', metrics.healthSuccesses);
  text.counter('etcd_server_health_failures', 'Health checks that failed.', metrics.healthFailures);
  text.counter(
    'etcd_server_learner_promote_successes',
    'Learners promoted while this member was leader.',
    metrics.learnersPromoted,
  );
  text.gauge('etcd_debugging_auth_revision', 'The revision of the auth store.', sources.authRevision());
  text.gauge('etcd_server_quota_backend_bytes', 'Quota of the database in bytes; 0: no quota.', sources.quotaBytes);
}

function showStore(text: MetricsText, { engine, watches, metrics, rpc }: MetricsSources, size: LogSize): void {
  const { machine } = engine;
  text.histogram(
    'etcd_disk_wal_fsync_duration_seconds',
    'Duration of flushing the log to disk.',
    metrics.walFsyncSeconds,
  );
  text.histogram(
    'etcd_disk_backend_commit_duration_seconds',
    'Duration of commits to the database.',
    metrics.backendCommitSeconds,
  );
  text.histogram('etcd_disk_backend_defrag_duration_seconds', 'Duration of defragmentation.', metrics.defragSeconds);
  text.gauge(
    'etcd_disk_defrag_inflight',
    '1 while defragmentation is in progress.',
    metrics.defragsUnderWay > 0 ? 1 : 0,
  );
  text.histogram('etcd_disk_backend_snapshot_duration_seconds', 'Duration of snapshots.', metrics.snapshotSeconds);
  showCompaction(text, metrics);
  text.histogram('etcd_mvcc_hash_duration_seconds', 'Duration of hashing the store.', metrics.hashSeconds);
  text.histogram(
    'etcd_mvcc_hash_rev_duration_seconds',
    'Duration of hashing the store at a revision.',
    metrics.hashRevisionSeconds,
  );
  text.gauge('etcd_mvcc_db_total_size_in_bytes', 'Size of the database on disk, in bytes.', size.bytes);
  text.gauge('etcd_mvcc_db_total_size_in_use_in_bytes', 'Used bytes of the database.', size.inUseBytes);
  text.gauge('etcd_debugging_mvcc_db_total_size_in_bytes', 'Size of the database on disk, in bytes.', size.bytes);
  for (const prefix of ['etcd_mvcc', 'etcd_debugging_mvcc']) {
    text.counter(`${prefix}_put_total`, 'Puts seen by this member.', metrics.puts);
    text.counter(`${prefix}_delete_total`, 'Deletes seen by this member.', metrics.deletes);
    text.counter(
      `${prefix}_range_total`,
      'Range requests received by this member.',
      rpc.started('etcdserverpb.KV', 'Range'),
    );
    text.counter(
      `${prefix}_txn_total`,
      'Transaction requests received by this member.',
      rpc.started('etcdserverpb.KV', 'Txn'),
    );
  }
  text.gauge('etcd_debugging_mvcc_keys_total', 'Number of keys.', machine.keyCount);
  text.gauge('etcd_debugging_mvcc_current_revision', 'The current revision.', machine.visible);
  text.gauge('etcd_debugging_mvcc_compact_revision', 'The revision of the last compaction.', machine.compacted);
  text.gauge('etcd_debugging_mvcc_total_put_size_in_bytes', 'Bytes of keys and values put.', metrics.putBytes);
  text.gauge('etcd_debugging_mvcc_watcher_total', 'Watchers.', watches.watchCount);
  text.gauge('etcd_debugging_mvcc_watch_stream_total', 'Watch streams.', watches.streamCount);
  text.gauge('etcd_debugging_mvcc_slow_watcher_total', 'Watchers that lag behind.', watches.slowCount);
  text.counter('etcd_debugging_mvcc_events_total', 'Events sent by this member.', watches.eventCount);
  text.gauge('hyperedge_etcd_cached_value_bytes', 'Bytes of values cached in memory.', machine.cachedBytes);
  const { level } = engine.cluster;
  text.gauge(
    'hyperedge_etcd_log_level',
    'Level of the formats that the log may contain, supported by all members.',
    level,
  );
  text.gauge('hyperedge_etcd_disk_full', '1 while writes are rejected because the disk is full.', engine.full ? 1 : 0);
}

function showCompaction(text: MetricsText, metrics: EtcdMetrics): void {
  const named = (name: string): string => `etcd_debugging_mvcc_${name}`;
  text.histogram(
    named('index_compaction_pause_duration_milliseconds'),
    'Duration of a step that removes versions from the index.',
    metrics.indexPauseMs,
  );
  text.histogram(
    named('db_compaction_pause_duration_milliseconds'),
    'Duration of a write that deletes rows.',
    metrics.compactionPauseMs,
  );
  text.histogram(
    named('db_compaction_total_duration_milliseconds'),
    'Duration from a compaction until all its rows are deleted.',
    metrics.compactionMs,
  );
  text.counter(named('db_compaction_keys_total'), 'Rows removed by compaction.', metrics.compactedRows);
  text.gauge(
    named('db_compaction_last'),
    'Time of the last completed compaction, in seconds since 1970; 0: none since the start.',
    Math.floor(metrics.lastCompactionMs / 1000),
  );
}

function showLeases(text: MetricsText, leases: LeaseCounts): void {
  text.counter('etcd_debugging_lease_granted_total', 'Leases granted.', leases.granted);
  text.counter('etcd_debugging_lease_renewed_total', 'Leases renewed.', leases.renewed);
  text.counter('etcd_debugging_lease_revoked_total', 'Leases revoked.', leases.revoked);
  text.counter('etcd_debugging_server_lease_expired_total', 'Leases expired.', leases.expired);
}

/** Process metrics with the names of Prometheus' client libraries. */
async function showProcess(text: MetricsText, facts: ProcessFacts | undefined): Promise<void> {
  const { user, system } = process.cpuUsage();
  text.counter('process_cpu_seconds_total', 'User and system CPU time, in seconds.', (user + system) / 1e6);
  text.gauge('process_resident_memory_bytes', 'Resident memory, in bytes.', process.memoryUsage.rss());
  text.gauge(
    'process_start_time_seconds',
    'Start of the process, in seconds since 1970.',
    // The value must be constant, because alerting rules count each change as a restart.
    performance.timeOrigin / 1000,
  );
  if (facts === undefined) return;
  const [open, limits, status] = await Promise.all([facts.openFiles(), facts.limits(), facts.status()]);
  if (open === undefined) return;
  text.gauge('process_open_fds', 'Open file descriptors.', open);
  text.gauge('os_fd_used', 'Open file descriptors.', open);
  const most = /^Max open files +(\d+)/m.exec(limits)?.[1];
  if (most !== undefined) {
    text.gauge('process_max_fds', 'Maximum number of open file descriptors.', Number(most));
    text.gauge('os_fd_limit', 'Maximum number of open file descriptors.', Number(most));
  }
  const mostVirtual = /^Max address space +(\d+|unlimited)/m.exec(limits)?.[1];
  if (mostVirtual !== undefined)
    text.gauge(
      'process_virtual_memory_max_bytes',
      'Maximum virtual memory, in bytes.',
      // Like Prometheus' Go library, which reports "unlimited" as the largest number.
      mostVirtual === 'unlimited' ? 2 ** 64 : Number(mostVirtual),
    );
  const virtual = /^VmSize:\s+(\d+) kB/m.exec(status)?.[1];
  if (virtual !== undefined)
    text.gauge('process_virtual_memory_bytes', 'Virtual memory, in bytes.', Number(virtual) * 1024);
}

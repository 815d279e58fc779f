import type { NodeId, StoredState } from '../core/raft/index.ts';
import type { OpenParts } from '../server/open-parts.ts';
import type { EtcdServerDeps } from '../server/server-port.ts';
import type { Settings } from '../server/settings.ts';
import type { EtcdMetrics } from '../services/metrics/metrics.ts';
import type { Engine } from './engine.ts';
import { Replica } from './replica.ts';

export interface ReplicaParts {
  readonly deps: EtcdServerDeps;
  readonly settings: Settings;
  readonly engine: Engine;
  readonly metrics: EtcdMetrics;
  readonly open: OpenParts;
}

const TICKS_PER_HEARTBEAT = 2;

/** Creates the replica of member `id` from its log. */
export function createReplica(parts: ReplicaParts, id: NodeId, stored: StoredState): Replica {
  const { deps, settings, engine, metrics, open } = parts;
  const { timing, random } = settings;
  const { keepEntries: _, ...bounds } = settings.bounds;
  const tickMs = Math.max(5, timing.heartbeatMs / TICKS_PER_HEARTBEAT);
  return new Replica({
    config: { ...bounds, forwardProposals: false, id, randomTicks: (below) => Math.floor(random.random() * below) },
    timing: {
      tickMs,
      heartbeatTicks: TICKS_PER_HEARTBEAT,
      electionTicks: Math.max(TICKS_PER_HEARTBEAT + 1, Math.round(timing.electionMs / tickMs)),
      adapts: timing.adapts ?? false,
    },
    stored,
    storage: deps.storage,
    clock: deps.clock,
    log: deps.log.named('raft'),
    send: (messages) => open.peers?.send(messages),
    machine: engine,
    runId: settings.runId,
    onFatal: deps.onFatal,
    onApplied: (ms) => metrics.applied(ms),
    onReadFailed: () => {
      metrics.readIndexesFailed += 1;
    },
    onLateHeartbeat: (to, ms) => metrics.lateHeartbeat(to, ms),
    onWritten: (ms) => metrics.written(ms),
  });
}

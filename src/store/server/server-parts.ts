/** Parts of a store that exist before its log is open, each built from the preceding parts. */
import { Auth } from '../auth/auth.ts';
import { AuthGuard } from '../auth/auth-guard.ts';
import { simpleTokens } from '../auth/auth-tokens.ts';
import { costLikeBcrypt, scryptHasher } from '../auth/password.ts';
import { Promoter } from '../membership/promoter.ts';
import { Engine } from '../replication/engine.ts';
import { EngineEvents } from '../replication/engine-events.ts';
import { CorruptionCheck } from '../replication/maintenance/corruption.ts';
import { FullDisk } from '../replication/maintenance/full-disk.ts';
import { LogLevel, LogLevels } from '../replication/maintenance/log-level.ts';
import { Maintenance } from '../replication/maintenance/maintenance.ts';
import type { Command } from '../replication/peers/entry-codec.ts';
import { PeerQueries } from '../replication/peers/peer-queries.ts';
import { Snapshots } from '../replication/peers/snapshots.ts';
import { LeaseQuorum } from '../services/lease-quorum.ts';
import { EtcdMetrics } from '../services/metrics/metrics.ts';
import { RequireLeader } from '../services/require-leader.ts';
import type { OpenParts } from './open-parts.ts';
import type { EtcdServerDeps } from './server-port.ts';
import type { Settings } from './settings.ts';

const CACHE_BYTES = 64 << 20;
const FLUSH_INTERVAL_MS = 1000;
const REQUEST_TIMEOUT_MS = 3000;
/** Topics of peer queries. */
const LEASES = 'leases';
const ROOM = 'room';
const YES = new Uint8Array();

export interface Parts {
  readonly metrics: EtcdMetrics;
  readonly events: EngineEvents;
  readonly engine: Engine;
  readonly auth: Auth;
  readonly guard: AuthGuard;
  readonly snapshots: Snapshots;
  readonly requireLeader: RequireLeader;
  readonly promoter: Promoter;
  readonly levels: LogLevels;
  readonly corruption: CorruptionCheck;
  readonly peerQueries: PeerQueries;
  readonly leaseQuorum: LeaseQuorum;
  readonly maintenance: Maintenance;
}

export function createParts(deps: EtcdServerDeps, settings: Settings, open: OpenParts): Parts {
  const { clock, log } = deps;
  const metrics = new EtcdMetrics(settings.slow.applyMs, log, clock);
  const events = new EngineEvents();
  const engine = createEngine(deps, settings, metrics, events);
  const auth = createAuth(deps, settings, engine, open);
  const guard = new AuthGuard({ auth, log, leaseKeys: (id) => engine.machine.leases.get(id)?.keys ?? [] });
  return { metrics, events, engine, auth, guard, ...replicated({ deps, settings, engine, events, open }) };
}

function createEngine(deps: EtcdServerDeps, settings: Settings, metrics: EtcdMetrics, events: EngineEvents): Engine {
  const engine = new Engine({
    storage: deps.storage,
    clock: deps.clock,
    log: deps.log,
    cacheBytes: deps.cacheBytes ?? CACHE_BYTES,
    flushIntervalMs: deps.flushIntervalMs ?? FLUSH_INTERVAL_MS,
    keepEntries: settings.bounds.keepEntries,
    defer: settings.defer,
    events,
    onRead: (ms) => metrics.read(ms),
    onDecided: (request, success, ms) => metrics.decided(request, success, ms),
    compaction: metrics.compaction,
    onProposalsFailed: (count) => {
      metrics.proposalsFailed += count;
    },
    onReadTimedOut: () => {
      metrics.slowReadIndexes += 1;
    },
  });
  events.published.add((revisions) => metrics.published(revisions));
  return engine;
}

function createAuth(deps: EtcdServerDeps, settings: Settings, engine: Engine, open: OpenParts): Auth {
  return new Auth({
    replicate: (command) => open.route.command({ type: 'auth', command }),
    tokens: deps.tokens ?? simpleTokens(deps.clock),
    progress: {
      applied: () => engine.replica.applied,
      appliedAt: (index) => engine.appliedWithin(index),
      isLed: () => engine.replica.leader !== undefined,
      get stopped() {
        return engine.stopped;
      },
      changed: () => engine.permissionsSettled,
    },
    hasher: deps.hasher ?? scryptHasher(deps.bcryptCost === undefined ? undefined : costLikeBcrypt(deps.bcryptCost)),
    replicatesTokens: () => engine.cluster.level >= LogLevel.tokens,
    clientCertAuth: deps.clientCertAuth ?? false,
    bytes: settings.random.bytes,
  });
}

interface Base {
  readonly deps: EtcdServerDeps;
  readonly settings: Settings;
  readonly engine: Engine;
  readonly events: EngineEvents;
  readonly open: OpenParts;
}

/** The parts that are built on the replicated store. */
function replicated({
  deps,
  settings,
  engine,
  events,
  open,
}: Base): Omit<Parts, 'metrics' | 'events' | 'engine' | 'auth' | 'guard'> {
  const { storage, clock, log } = deps;
  const peers = (): OpenParts['peers'] => open.peers;
  const command = (wanted: Command): Promise<void> => open.route.command(wanted);
  const peerQueries = new PeerQueries({ engine, peers });
  const leaseQuorum = new LeaseQuorum({
    engine,
    clock,
    queryPeers: (message, agreed) => void peerQueries.queryAll(LEASES, message, agreed),
  });
  const fullDisk = new FullDisk({ engine, storage, log, querySpace: (has) => peerQueries.queryAll(ROOM, YES, has) });
  peerQueries.serve(LEASES, async (message) => leaseQuorum.answer(message));
  peerQueries.serve(ROOM, async () => ((await fullDisk.hasRoom()) ? YES : undefined));
  const { compaction, quotaBytes } = deps;
  const maintenance = new Maintenance({ engine, storage, clock, log, compaction, quotaBytes, command });
  events.published.add((revisions) => open.watches?.publish(revisions));
  events.published.add(() => maintenance.wrote());
  events.replaced.add((reached) => open.watches?.resync(reached));
  events.full.add(() => void fullDisk.transferLeadership());
  return {
    peerQueries,
    leaseQuorum,
    maintenance,
    snapshots: new Snapshots({
      engine,
      storage,
      peers: () => open.connectedPeers,
      clock,
      log,
      runId: settings.runId,
    }),
    requireLeader: new RequireLeader({
      clock,
      hasLeader: () => engine.replica.leader !== undefined,
      electionMs: () => engine.replica.electionMs,
    }),
    promoter: new Promoter(engine, clock, log),
    levels: new LogLevels({
      engine,
      clock,
      log,
      own: settings.logLevel,
      onRequest: deps.levelOnRequest === true,
      fetchLevel: (member) => open.connectedPeers.members(member, REQUEST_TIMEOUT_MS),
    }),
    corruption: new CorruptionCheck({ engine, storage, clock, log, peers, command, compareMs: deps.compareMs ?? 0 }),
  };
}

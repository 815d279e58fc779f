/** Services of a member: etcd's RPCs behind authorization, routing and metrics, and plain HTTP on the same port. */

import type { RpcService } from '../../wire/grpc/port.ts';
import type { Auth } from '../auth/auth.ts';
import type { AuthGuard } from '../auth/auth-guard.ts';
import { authService } from '../auth/auth-service.ts';
import type { Engine } from '../replication/engine.ts';
import type { LogLevels } from '../replication/maintenance/log-level.ts';
import type { Peers } from '../replication/peers/peers.ts';
import type { Router } from '../replication/peers/router.ts';
import type { EtcdServerDeps } from '../server/server-port.ts';
import { WatchService } from '../watch/watch-service.ts';
import { clusterService } from './cluster-service.ts';
import { electionService } from './election-service.ts';
import type { Encoder } from './encode.ts';
import { gateway } from './gateway.ts';
import { answerHttp } from './http.ts';
import { kvService, type UnaryHandlers } from './kv-service.ts';
import type { LeaseQuorum } from './lease-quorum.ts';
import { LeaseService } from './lease-service.ts';
import { levelService } from './level-service.ts';
import { LocalClient, type StreamHandlers } from './local-client.ts';
import { lockService } from './lock-service.ts';
import { MaintenanceService } from './maintenance-service.ts';
import type { EtcdMetrics, MetricsSources } from './metrics/metrics.ts';
import { RpcMetrics } from './metrics/rpc-metrics.ts';
import { recoveryService } from './recovery-service.ts';
import type { RequireLeader } from './require-leader.ts';

/** etcd's default for `progress_notify`. */
const PROGRESS_INTERVAL_MS = 600_000;
/** Interval at which the remaining time of leases is recorded. Source: etcd lease/lessor.go. */
const LEASE_CHECKPOINT_MS = 300_000;

export interface ServiceParts {
  readonly deps: EtcdServerDeps;
  readonly engine: Engine;
  readonly encoder: Encoder;
  readonly router: Router;
  readonly auth: Auth;
  readonly guard: AuthGuard;
  readonly requireLeader: RequireLeader;
  readonly leaseQuorum: LeaseQuorum;
  readonly metrics: EtcdMetrics;
  readonly levels: LogLevels;
  readonly peers: () => Peers | undefined;
  readonly bytes: (length: number) => Uint8Array;
  readonly defer: (run: () => void) => void;
  readonly slowRequestMs: number;
  readonly extensiveMetrics: boolean;
}

export interface Services {
  readonly service: RpcService;
  readonly watches: WatchService;
  readonly leases: LeaseService;
}

/** Creates the services without starting them. Watches and leases have to be started. */
export function createServices(parts: ServiceParts): Services {
  const { deps, engine, encoder, router, auth, guard, leaseQuorum, peers, bytes } = parts;
  const { clock, log, storage, initialCluster, strictReconfigCheck = true, maxLearners = 1 } = deps;
  const watches = new WatchService({
    engine,
    encoder,
    clock,
    log,
    defer: parts.defer,
    progressIntervalMs: deps.progressNotifyMs ?? PROGRESS_INTERVAL_MS,
    ...(deps.fragmentBytes === undefined ? {} : { fragmentBytes: deps.fragmentBytes }),
    refusal: (call, key, end) => guard.watchRefusal(call, key, end),
  });
  const leases = new LeaseService({
    engine,
    encoder,
    clock,
    log,
    newLeaseId: () => Buffer.from(bytes(8)).readBigUInt64BE() >> 1n,
    callLeader: (path, message, here) => router.callLeader(path, message, here),
    quorum: leaseQuorum,
    checkpointMs: deps.leaseCheckpointMs ?? LEASE_CHECKPOINT_MS,
    send: (updates) => peers()?.sendLeaseUpdates(updates),
  });
  const maintenance = new MaintenanceService({
    engine,
    encoder,
    storage,
    metrics: parts.metrics,
    clock,
    log,
    command: (command) => router.command(command),
  });
  const kv = kvService(engine, encoder, log, deps.limits);
  const handlers: UnaryHandlers = {
    ...kv,
    ...leases.unary,
    ...maintenance.unary,
    ...levelService({ levels: parts.levels, engine, encoder, log }),
    ...clusterService({
      engine,
      encoder,
      clock,
      log,
      token: initialCluster?.token ?? '',
      strict: strictReconfigCheck,
      maxLearners,
      promoted: () => {
        parts.metrics.learnersPromoted += 1;
      },
    }),
    ...authService({
      auth,
      encoder,
      log,
      revision: () => engine.machine.visible,
      upToDate: () => engine.upToDate(),
      isLed: () => engine.isLed(),
    }),
  };
  const rpc = new RpcMetrics({ clock, log, slowMs: parts.slowRequestMs, extensive: parts.extensiveMetrics });
  router.servePeers({ ...handlers, ...leases.peerHandlers });
  const required = parts.requireLeader;
  const streams = guard.streams({
    '/etcdserverpb.Watch/Watch': watches.handler,
    '/etcdserverpb.Lease/LeaseKeepAlive': leases.keepAlive,
    '/etcdserverpb.Maintenance/Snapshot': maintenance.snapshot,
  });
  const routed = router.unary(guard.unary(router.forwarding(handlers)), (path, message, call) =>
    guard.check(path, message, call),
  );
  // Authorizes every operation of a lock or an election like one of a remote client.
  const local = new LocalClient(routed, streams);
  const elections = electionService(local, encoder, log);
  const unary = rpc.unary(
    required.unary({
      ...routed,
      ...lockService(local, encoder, log),
      ...elections.unary,
      ...recoveryService(engine, storage, log),
    }),
  );
  const counted = rpc.streams(required.streams({ ...streams, ...elections.streams }));
  const json =
    deps.jsonGateway === false ? () => undefined : gateway(new LocalClient(unary, counted), log, deps.gatewayStreams);
  const service = rpcService(unary, counted, json, {
    engine,
    watches,
    leases: leases.counts,
    rpc,
    metrics: parts.metrics,
    size: () => storage.size(),
    authRevision: () => auth.machine.revision,
    quotaBytes: deps.quotaBytes ?? 0,
    processFacts: deps.processFacts,
  });
  return { service, watches, leases };
}

function rpcService(
  unary: UnaryHandlers,
  streams: StreamHandlers,
  json: ReturnType<typeof gateway>,
  sources: MetricsSources,
): RpcService {
  const unaryByPath = new Map(Object.entries(unary));
  const streamByPath = new Map(Object.entries(streams));
  const services = new Set([...unaryByPath.keys(), ...streamByPath.keys()].map((path) => path.split('/')[1]));
  return {
    hasService: (name) => services.has(name),
    unary: (path) => unaryByPath.get(path),
    stream: (path) => streamByPath.get(path),
    http: (request) => json(request) ?? answerHttp(request, sources),
  };
}

import { randomBytes } from 'node:crypto';
import { Auth } from './auth.ts';
import { AuthGuard } from './auth-guard.ts';
import { authService } from './auth-service.ts';
import { simpleTokens } from './auth-tokens.ts';
import { electionService } from './election-service.ts';
import { Encoder } from './encode.ts';
import { Engine } from './engine.ts';
import { answerHttp } from './http.ts';
import type { EtcdServer, EtcdServerDeps } from './index.ts';
import { kvService, type UnaryHandlers } from './kv-service.ts';
import { LeaseService } from './lease-service.ts';
import { LocalClient } from './local-client.ts';
import { lockService } from './lock-service.ts';
import { MaintenanceService } from './maintenance-service.ts';
import { costLikeBcrypt, scryptHasher } from './password.ts';
import type { RpcService, StreamCall, StreamHandler, UnaryCall } from './port.ts';
import { WatchService } from './watch-service.ts';

const CACHE_BYTES = 64 << 20;
const FLUSH_INTERVAL_MS = 1000;
/** etcd's default for `progress_notify`. */
const PROGRESS_INTERVAL_MS = 600_000;
/** Watches never end by themselves; their clients come back elsewhere. */
const CLOSE_GRACE_MS = 100;

export function createEtcdServer(deps: EtcdServerDeps): EtcdServer {
  let watches: WatchService | undefined;
  let leases: LeaseService | undefined;
  const engine = new Engine({
    revisions: deps.revisions,
    clock: deps.clock,
    log: deps.log,
    cacheBytes: deps.cacheBytes ?? CACHE_BYTES,
    flushIntervalMs: deps.flushIntervalMs ?? FLUSH_INTERVAL_MS,
    onPublish: (revisions) => watches?.publish(revisions),
    onFatal: deps.onFatal,
  });

  const auth: Auth = new Auth({
    replicate: async (command) => auth.apply(command),
    tokens: deps.tokens ?? simpleTokens(deps.clock),
    hasher: scryptHasher(deps.bcryptCost === undefined ? undefined : costLikeBcrypt(deps.bcryptCost)),
    clientCertAuth: deps.clientCertAuth ?? false,
  });
  const guard = new AuthGuard({
    auth,
    log: deps.log,
    leaseKeys: (id) => engine.machine.leases.get(id)?.keys ?? [],
  });

  return {
    start: async () => {
      const began = deps.clock.monotonicMs();
      await engine.start();
      const encoder = new Encoder(engine.state.clusterId, engine.state.memberId);
      watches = new WatchService({
        engine,
        encoder,
        clock: deps.clock,
        log: deps.log,
        progressIntervalMs: PROGRESS_INTERVAL_MS,
        refusal: (call, key, end) => guard.watchRefusal(call, key, end),
      });
      leases = new LeaseService({
        engine,
        encoder,
        clock: deps.clock,
        log: deps.log,
        newLeaseId: () => randomBytes(8).readBigUInt64BE() >> 1n,
      });
      const member = { name: deps.name, clientUrls: deps.clientUrls, peerUrls: deps.peerUrls ?? [] };
      const maintenance = new MaintenanceService(engine, encoder, deps.revisions, member, deps.log);
      const kv = kvService(engine, encoder, deps.log);
      // Locks and elections are guarded themselves; what they do for their callers is not asked about again.
      const client = new LocalClient({ ...kv, ...leases.unary }, { '/etcdserverpb.Watch/Watch': watches.unguarded });
      const elections = electionService(client, encoder, deps.log);
      const unary = guard.unary({
        ...kv,
        ...leases.unary,
        ...maintenance.unary,
        ...lockService(client, encoder, deps.log),
        ...elections.unary,
        ...authService({ auth, encoder, log: deps.log, revision: () => engine.machine.visible }),
      });
      const streams = guard.streams({
        '/etcdserverpb.Watch/Watch': watches.handler,
        '/etcdserverpb.Lease/LeaseKeepAlive': leases.keepAlive,
        '/etcdserverpb.Maintenance/Snapshot': maintenance.snapshot,
        ...elections.streams,
      });
      try {
        const address = await deps.listener.listen(rpcService(unary, streams, engine, watches));
        leases.start();
        watches.start();
        deps.log.info('store is ready', {
          revision: engine.machine.visible,
          keys: engine.machine.keyCount,
          ms: Math.round(deps.clock.monotonicMs() - began),
        });
        return address;
      } catch (error) {
        await engine.stop();
        throw error;
      }
    },
    stop: async () => {
      leases?.stop();
      watches?.stop();
      // Answers what is under way before the connections go.
      await engine.stop();
      await deps.listener.close(CLOSE_GRACE_MS);
    },
  };
}

function rpcService(
  unary: UnaryHandlers,
  streams: Readonly<Record<string, (call: StreamCall) => StreamHandler>>,
  engine: Engine,
  watches: WatchService,
): RpcService {
  const counts = new Map<string, number>();
  const unaryByPath = new Map<string, (message: Uint8Array, call: UnaryCall) => void>(Object.entries(unary));
  const streamByPath = new Map(Object.entries(streams));
  for (const path of [...unaryByPath.keys(), ...streamByPath.keys()]) counts.set(path, 0);
  const count = (path: string): void => {
    const before = counts.get(path);
    if (before !== undefined) counts.set(path, before + 1);
  };
  const services = new Set([...counts.keys()].map((path) => path.split('/')[1]));
  return {
    hasService: (name) => services.has(name),
    unary: (path) => {
      const handler = unaryByPath.get(path);
      if (handler !== undefined) count(path);
      return handler;
    },
    stream: (path) => {
      const handler = streamByPath.get(path);
      if (handler !== undefined) count(path);
      return handler;
    },
    http: (method, path) => answerHttp(method, path, engine, watches, { byPath: counts }),
  };
}

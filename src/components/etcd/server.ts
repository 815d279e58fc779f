import { randomBytes } from 'node:crypto';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { NodeId } from '../../core/raft/index.ts';
import { Auth } from './auth/auth.ts';
import { AuthGuard } from './auth/auth-guard.ts';
import { simpleTokens } from './auth/auth-tokens.ts';
import { costLikeBcrypt, scryptHasher } from './auth/password.ts';
import type { EtcdServer, EtcdServerDeps, StoreBounds } from './index.ts';
import { identified, storedState, wasReplaced } from './membership/bootstrap.ts';
import { hex, type Member } from './membership/cluster.ts';
import { Newcomer, wipedError } from './membership/join.ts';
import { departure } from './membership/member-removal.ts';
import { announce } from './membership/publish.ts';
import { MendingServer } from './recovery/recovery.ts';
import { Promoter, replaceMember } from './recovery/replacement.ts';
import { Corruption } from './replication/corruption.ts';
import { ALARM_CORRUPT, Engine } from './replication/engine.ts';
import { FullDisk } from './replication/full-disk.ts';
import { GossipLink } from './replication/gossip-link.ts';
import { handOver } from './replication/leadership-transfer.ts';
import { LogLevel, LogLevels, NEWEST_LEVEL, requireLevel } from './replication/log-level.ts';
import { Upkeep } from './replication/maintenance.ts';
import type { MemberTable } from './replication/peer-protocol.ts';
import { Questions } from './replication/peer-queries.ts';
import { Peers } from './replication/peers.ts';
import { Replica } from './replication/replica.ts';
import { Router } from './replication/router.ts';
import { Snapshots } from './replication/snapshots.ts';
import { Encoder } from './services/encode.ts';
import { LeaseQuorum } from './services/lease-quorum.ts';
import type { LeaseService } from './services/lease-service.ts';
import { CLUSTER_VERSION } from './services/maintenance-service.ts';
import { EtcdMetrics } from './services/metrics.ts';
import { RequireLeader } from './services/require-leader.ts';
import { createServices } from './services/services.ts';
import type { WatchService } from './watch/watch-service.ts';

const CACHE_BYTES = 64 << 20;
const FLUSH_INTERVAL_MS = 1000;
/** Watches never end by themselves; their clients come back elsewhere. */
const CLOSE_GRACE_MS = 100;
/** etcd's. */
const SLOW = { applyMs: 100, requestMs: 300 };
const TIMING = { heartbeatMs: 100, electionMs: 1000, adapts: true };
const TICKS_PER_HEARTBEAT = 2;
const FIRST_LEADER_MS = 5000;
const ASK_MS = 3000;
/** At least: etcd's. */
const REMOVED_STAYS_MS = 1000;

/** What members ask each other about. */
const LEASES = 'leases';
const ROOM = 'room';
const YES = new Uint8Array();
const RANDOM = { random: () => Math.random(), bytes: (length: number) => randomBytes(length) };

/** Bounds on what waits and what is kept. */
const BOUNDS: StoreBounds = {
  maxAppendBytes: 1 << 20,
  maxCommittedBytes: 4 << 20,
  maxInflightMessages: 256,
  maxInflightBytes: 16 << 20,
  maxUncommittedBytes: 64 << 20,
  maxCachedBytes: 4 << 20,
  maxPendingReads: 10_000,
  keepEntries: 5000,
};

export function createEtcdServer(deps: EtcdServerDeps): EtcdServer {
  return new MendingServer(deps, (own, replaces, damage) => new Server(own, replaces, damage));
}

/** One life of the store: after `stop` another can begin with the same log and listeners. */
export interface StoreServer extends EtcdServer {
  /** Who belongs to the cluster, as far as it is known; also when `start` has failed. */
  readonly members: readonly Member[];
  /** The last revision that anybody may have seen, 0 when nothing was. */
  readonly revision: number;
}

class Server implements StoreServer {
  readonly #deps: EtcdServerDeps;
  readonly #metrics: EtcdMetrics;
  readonly #random: NonNullable<EtcdServerDeps['random']>;
  readonly #defer: NonNullable<EtcdServerDeps['defer']>;
  readonly #bounds: StoreBounds;
  readonly #runId: string;
  readonly #auth: Auth;
  readonly #guard: AuthGuard;
  readonly #engine: Engine;
  readonly #snapshots: Snapshots;
  readonly #leaseQuorum: LeaseQuorum;
  readonly #upkeep: Upkeep;
  readonly #requireLeader: RequireLeader;
  readonly #promoter: Promoter;
  readonly #corruption: Corruption;
  readonly #questions: Questions;
  readonly #fullDisk: FullDisk;
  readonly #levels: LogLevels;
  readonly #replaces: ReadonlyArray<readonly string[]> | undefined;
  readonly #damage: () => CodedError | undefined;
  #router: Router | undefined;
  #peers: Peers | undefined;
  #watches: WatchService | undefined;
  #leases: LeaseService | undefined;
  #encoder: Encoder | undefined;
  #gossip: GossipLink | undefined;
  #toldLeader: NodeId | undefined;
  #toldTerm = 0;
  #noted = Promise.resolve();
  #isTold = false;
  #leaving: Promise<void> | undefined;
  #stopped = false;

  /** `damage`: what has turned out to be wrong with the data while it starts. */
  constructor(
    deps: EtcdServerDeps,
    replaces: ReadonlyArray<readonly string[]> | undefined,
    damage: () => CodedError | undefined,
  ) {
    this.#deps = deps;
    this.#replaces = replaces;
    this.#damage = damage;
    const { storage, clock, log, random = RANDOM, slow = SLOW } = deps;
    this.#metrics = new EtcdMetrics(slow.applyMs, log, () => clock.nowMs());
    this.#random = random;
    this.#defer = deps.defer ?? ((run) => void setImmediate(run));
    this.#bounds = { ...BOUNDS, ...deps.bounds };
    this.#runId = Buffer.from(random.bytes(6)).toString('hex');
    this.#auth = new Auth({
      replicate: (command) => this.#route().command({ type: 'auth', command }),
      tokens: deps.tokens ?? simpleTokens(clock),
      progress: {
        applied: () => this.#engine.replica.applied,
        appliedAt: (index) => this.#engine.appliedInTime(index),
        isLed: () => this.#engine.replica.leader !== undefined,
        changed: () => this.#engine.rightsSettled,
      },
      hasher: deps.hasher ?? scryptHasher(deps.bcryptCost === undefined ? undefined : costLikeBcrypt(deps.bcryptCost)),
      tellsTokens: () => this.#engine.cluster.level >= LogLevel.tokens,
      clientCertAuth: deps.clientCertAuth ?? false,
      bytes: random.bytes,
    });
    this.#guard = new AuthGuard({
      auth: this.#auth,
      log,
      leaseKeys: (id) => this.#engine.machine.leases.get(id)?.keys ?? [],
    });
    this.#engine = new Engine({
      storage,
      clock,
      log,
      cacheBytes: deps.cacheBytes ?? CACHE_BYTES,
      flushIntervalMs: deps.flushIntervalMs ?? FLUSH_INTERVAL_MS,
      keepEntries: this.#bounds.keepEntries,
      defer: this.#defer,
      onPublish: (revisions) => {
        this.#metrics.published(revisions);
        this.#watches?.publish(revisions);
        this.#upkeep.wrote();
      },
      onReplaced: (reached) => this.#watches?.resync(reached),
      onLeadership: () => this.#leadership(),
      onMembers: () => this.#membersChanged(),
      onFull: () => void this.#fullDisk.handOver(),
      onRead: (ms) => this.#metrics.read(ms),
      onDecided: (request, success, ms) => this.#metrics.decided(request, success, ms),
      compaction: this.#metrics.compaction,
      onProposalsFailed: (count) => {
        this.#metrics.proposalsFailed += count;
      },
      onReadTimedOut: () => {
        this.#metrics.slowReadIndexes += 1;
      },
      onAuth: this.#auth,
      streamSnapshot: (to, index) => this.#snapshots.stream(to, index),
      takeSnapshot: (index) => this.#snapshots.take(index),
    });
    this.#snapshots = new Snapshots({
      engine: this.#engine,
      storage,
      peers: () => this.#connectedPeers(),
      clock,
      log,
      runId: this.#runId,
    });
    this.#requireLeader = new RequireLeader({
      clock,
      hasLeader: () => this.#engine.replica.leader !== undefined,
      electionMs: () => this.#engine.replica.electionMs,
    });
    this.#promoter = new Promoter(this.#engine, clock, log);
    this.#levels = new LogLevels({
      engine: this.#engine,
      clock,
      log,
      own: this.#logLevel,
      ask: (member) => this.#connectedPeers().members(member, ASK_MS),
    });
    this.#corruption = new Corruption({
      engine: this.#engine,
      storage,
      clock,
      log,
      peers: () => this.#peers,
      command: (command) => this.#route().command(command),
      compareMs: deps.compareMs ?? 0,
    });
    this.#leaseQuorum = new LeaseQuorum({
      engine: this.#engine,
      clock,
      askAll: (message, agreed) => void this.#questions.askAll(LEASES, message, agreed),
    });
    this.#fullDisk = new FullDisk({
      engine: this.#engine,
      storage,
      log,
      ask: (has) => this.#questions.askAll(ROOM, YES, has),
    });
    this.#questions = new Questions({
      engine: this.#engine,
      peers: () => this.#peers,
      answers: {
        [LEASES]: async (message) => this.#leaseQuorum.answer(message),
        [ROOM]: async () => ((await this.#fullDisk.hasRoom()) ? YES : undefined),
      },
    });
    this.#upkeep = new Upkeep({
      engine: this.#engine,
      storage,
      clock,
      log,
      compaction: deps.compaction,
      quotaBytes: deps.quotaBytes,
      command: (command) => this.#route().command(command),
    });
  }

  get #logLevel(): number {
    return this.#deps.logLevel ?? NEWEST_LEVEL;
  }

  get members(): readonly Member[] {
    return this.#engine.cluster.members;
  }

  get revision(): number {
    return this.#engine.machine.visible;
  }

  async start(): Promise<{ readonly host: string; readonly port: number }> {
    const { clock, log, listener, peers: peering, gossip } = this.#deps;
    const engine = this.#engine;
    const began = clock.monotonicMs();
    const state = await this.#identified();
    try {
      await engine.load(state);
      requireLevel(engine.cluster.level, this.#logLevel);
      const { clusterId, memberId } = engine.identity;
      const isRemoved = engine.cluster.wasRemoved(hex(memberId));
      await this.#noteOthers();
      const replica = await this.#replica(hex(memberId), state);
      const encoder = new Encoder(clusterId, memberId);
      this.#encoder = encoder;
      const router = new Router({
        engine,
        encoder,
        clock,
        log,
        peers: () => this.#peers,
        authRevision: () => (this.#auth.machine.enabled ? this.#auth.machine.revision : 0),
        failed: () => {
          this.#metrics.proposalsFailed += 1;
        },
      });
      this.#router = router;
      const { service, watches, leases } = createServices({
        deps: this.#deps,
        engine,
        encoder,
        router,
        auth: this.#auth,
        guard: this.#guard,
        requireLeader: this.#requireLeader,
        leaseQuorum: this.#leaseQuorum,
        metrics: this.#metrics,
        peers: () => this.#peers,
        bytes: this.#random.bytes,
        defer: this.#defer,
        slowRequestMs: (this.#deps.slow ?? SLOW).requestMs,
        extensiveMetrics: this.#deps.extensiveMetrics === true,
      });
      this.#watches = watches;
      this.#leases = leases;
      if (peering !== undefined) {
        this.#peers = this.#connect(replica, clusterId);
        await peering.listener.listen(this.#peers.service);
        this.#peers.setMembers(engine.cluster.members);
      }
      engine.begin(replica);
      if (isRemoved) {
        this.#leaving = this.#departure();
        await this.#leaving;
        if (this.#stopped) throw new CodedError('closed', 'stopped before the others could do without this member');
        throw removedError();
      }
      // Alone there is nothing to wait for but the disk.
      while (replica.alone && !engine.leads) {
        await engine.leadershipChange(FIRST_LEADER_MS);
        const damage = this.#damage();
        if (damage !== undefined) throw damage;
        if (this.#stopped) throw new CodedError('closed', 'stopped before there was room to begin');
      }
      if (this.#deps.compareAtStart === true && !replica.alone) await this.#corruption.compareOwn();
      const address = await listener.listen(service);
      this.#gossip = gossip === undefined ? undefined : new GossipLink({ hints: gossip, engine, clock });
      this.#gossip?.start();
      this.#leases?.start();
      this.#watches?.start();
      this.#upkeep.start();
      this.#corruption.start();
      void this.#publish();
      log.info('store is ready', {
        revision: engine.machine.visible,
        keys: engine.machine.keyCount,
        ms: Math.round(clock.monotonicMs() - began),
      });
      return address;
    } catch (error) {
      await this.#close();
      throw error;
    }
  }

  /** The words are etcd's: who starts it waits for some of them. */
  async #publish(): Promise<void> {
    const { clock, log, name, clientUrls, onPublished } = this.#deps;
    const engine = this.#engine;
    log.info(`enabled capabilities for version ${CLUSTER_VERSION}`);
    const published = await announce({
      engine,
      name,
      clientUrls,
      clock,
      log,
      command: (command) => this.#route().command(command),
      stopped: () => this.#stopped,
    });
    if (!published) return;
    const { clusterId, memberId } = engine.identity;
    log.info('published this member to the cluster', {
      member: hex(memberId),
      cluster: hex(clusterId),
      name,
      clientUrls: clientUrls.join(),
    });
    onPublished?.();
  }

  async stop(): Promise<void> {
    if (this.#stopped) return;
    await handOver(this.#engine, this.#deps.clock, this.#deps.log);
    await this.#close();
  }

  async #close(): Promise<void> {
    const { listener, peers, storage } = this.#deps;
    this.#stopped = true;
    this.#leases?.stop();
    this.#watches?.stop();
    this.#upkeep.stop();
    this.#promoter.stop();
    this.#levels.stop();
    this.#corruption.stop();
    this.#requireLeader.stop();
    this.#snapshots.stop();
    await this.#gossip?.stop();
    // Answers what is under way before the connections go.
    await this.#engine.stop();
    await this.#peers?.stop();
    await this.#noted;
    await Promise.all([listener.close(CLOSE_GRACE_MS), peers?.listener.close(CLOSE_GRACE_MS)]);
    await storage.close();
  }

  async #identified() {
    const { storage, clock, log, name, clientUrls, peerUrls = [], initialCluster, peers, onFatal } = this.#deps;
    const state = await storage.open(onFatal);
    try {
      return await identified(state, {
        storage,
        clock,
        log,
        name,
        clientUrls,
        peerUrls,
        initial: initialCluster,
        dial: peers?.dial,
        forceNewCluster: this.#deps.forceNewCluster,
        replaces: this.#replaces,
        logLevel: this.#logLevel,
        bytes: this.#random.bytes,
        stopped: () => this.#stopped,
      });
    } catch (error) {
      await storage.close();
      throw error;
    }
  }

  async #replica(id: NodeId, state: Parameters<typeof storedState>[0]): Promise<Replica> {
    const { storage, clock, log, timing = TIMING, onFatal } = this.#deps;
    const { keepEntries: _, ...bounds } = this.#bounds;
    const { random } = this.#random;
    const tickMs = Math.max(5, timing.heartbeatMs / TICKS_PER_HEARTBEAT);
    return new Replica({
      config: { ...bounds, forwardProposals: false, id, randomTicks: (below) => Math.floor(random() * below) },
      timing: {
        tickMs,
        heartbeatTicks: TICKS_PER_HEARTBEAT,
        electionTicks: Math.max(TICKS_PER_HEARTBEAT + 1, Math.round(timing.electionMs / tickMs)),
        adapts: timing.adapts ?? false,
      },
      stored: await storedState(state, storage),
      storage,
      clock,
      log: log.named('raft'),
      send: (messages) => this.#peers?.send(messages),
      machine: this.#engine,
      runId: this.#runId,
      onFatal,
      onApplied: (ms) => this.#metrics.applied(ms),
      onReadFailed: () => {
        this.#metrics.readIndexesFailed += 1;
      },
      onLateHeartbeat: (to, ms) => this.#metrics.lateHeartbeat(to, ms),
      onWritten: (ms) => this.#metrics.written(ms),
    });
  }

  #route(): Router {
    if (this.#router === undefined) throw new CodedError('closed', 'the store is not open');
    return this.#router;
  }

  #connectedPeers(): Peers {
    if (this.#peers === undefined) throw new CodedError('closed', 'this member has no others');
    return this.#peers;
  }

  #leadership(): void {
    const { replica } = this.#engine;
    this.#metrics.leaderSeen(replica.leader);
    if (this.#encoder !== undefined) this.#encoder.term = replica.term;
    this.#leases?.leadershipChanged();
    this.#router?.leaderChanged();
    this.#requireLeader.leaderChanged();
    this.#promoter.consider();
    this.#levels.consider();
    this.#snapshots.changed();
    this.#gossip?.publish();
    const { leader, term } = replica;
    if (replica.alone || (leader === this.#toldLeader && term === this.#toldTerm)) return;
    this.#toldLeader = leader;
    this.#toldTerm = term;
    if (leader === undefined) this.#deps.log.warn('no member leads', { term });
    else this.#deps.log.info(leader === replica.id ? 'this member leads' : 'another member leads', { leader, term });
  }

  #membersChanged(): void {
    const { cluster, replica } = this.#engine;
    if (this.#stopped) return;
    if (cluster.wasRemoved(replica.id)) {
      this.#leave();
      return;
    }
    this.#peers?.setMembers(cluster.members);
    void this.#noteOthers();
    this.#promoter.consider();
    this.#levels.consider();
    const { alarms } = cluster;
    if (alarms.some((each) => each.member === replica.id && each.alarm === ALARM_CORRUPT))
      this.#deps.onFatal(new CodedError('dissents', 'the store of this member differs from that of the majority'));
    this.#snapshots.changed();
    try {
      requireLevel(cluster.level, this.#logLevel);
    } catch (error) {
      this.#deps.onFatal(error as CodedError);
    }
  }

  /** For the day on which the store cannot be read. */
  async #noteOthers(): Promise<void> {
    const { peers, storage, log } = this.#deps;
    if (peers === undefined) return;
    const { cluster, identity } = this.#engine;
    const own = hex(identity.memberId);
    const others = cluster.members.filter(({ id }) => id !== own).map((member) => member.peerUrls);
    this.#noted = this.#noted
      .then(() => storage.noteOthers(others.filter((urls) => urls.length > 0)))
      .catch((error: unknown) => log.warn('the other members could not be noted', { cause: messageOf(error) }));
    await this.#noted;
  }

  /** Ends when the others can do without this member, and not before whoever asked for it here has been answered. */
  #leave(): void {
    this.#leaving ??= new Promise<void>((resolve) => this.#deps.clock.setTimer(REMOVED_STAYS_MS, resolve))
      .then(() => this.#departure())
      .then(() => {
        if (!this.#stopped) this.#deps.onFatal(removedError());
      });
  }

  #departure(): Promise<void> {
    const { peers, clock, log } = this.#deps;
    const { cluster, replica } = this.#engine;
    return departure({
      id: replica.id,
      dial: peers?.dial,
      clock,
      log,
      members: () => cluster.members,
      stopped: () => this.#stopped,
    });
  }

  /** Another member says so. An id that a founder makes up of its addresses may not be the one that it had last. */
  async #toldRemoved(): Promise<void> {
    const { name, peerUrls = [], initialCluster, peers, clock, onFatal } = this.#deps;
    if (this.#isTold) return;
    this.#isTold = true;
    const isNew = this.#engine.replica.raft.status().lastIndex <= 1;
    const founds = isNew && initialCluster !== undefined && !initialCluster.existing;
    const asking = { name, peerUrls, dial: peers?.dial, clock, stopped: () => this.#stopped };
    if (founds && (await wasReplaced(initialCluster, asking))) onFatal(wipedError(name));
    else if (!this.#stopped) this.#leave();
  }

  /** Throws CodedError 'removed': what this member knows is of the past then, and nobody is to go by it. */
  #memberTable(): MemberTable {
    const { cluster, identity, membersWritten } = this.#engine;
    if (cluster.wasRemoved(hex(identity.memberId))) throw removedError();
    const { members, conf } = cluster;
    const { token = '' } = this.#deps.initialCluster ?? {};
    return {
      clusterId: identity.clusterId,
      members,
      voters: conf.voters,
      written: membersWritten,
      token,
      level: this.#logLevel,
    };
  }

  #connect(replica: Replica, clusterId: bigint): Peers {
    const { peers, clock, log, onFatal } = this.#deps;
    const { id } = replica;
    if (peers === undefined) throw new CodedError('closed', 'this member has no others');
    const engine = this.#engine;
    const { voters } = replica.conf;
    const known = voters.includes(id) ? voters : engine.cluster.members.map((member) => member.id);
    const isNew = (): boolean => replica.raft.lastIndex <= 1;
    const newcomer = new Newcomer({
      id,
      log,
      others: isNew() ? known.filter((member) => member !== id) : [],
      isNew,
      ask: (member) => this.#connectedPeers().members(member, ASK_MS),
      step: (message) => engine.replica.step(message),
      wiped: onFatal,
    });
    return new Peers({
      id,
      clusterId,
      dial: peers.dial,
      clock,
      log: log.named('peers'),
      life: Buffer.from(this.#random.bytes(5)).readUIntBE(0, 5),
      handler: {
        message: (message) => newcomer.message(message),
        leaseNews: (from, news) => {
          if (from === engine.replica.leader) this.#leases?.heard(news);
        },
        replace: async (request) => {
          await replaceMember(engine, request, { clock, log, token: this.#deps.initialCluster?.token ?? '' });
          return this.#memberTable();
        },
        hash: (revision) => this.#corruption.hashAt(revision),
        forwarded: (forward) =>
          this.#questions.answer(forward.path, forward.message) ?? this.#route().forwarded(forward),
        snapshotPiece: (piece) => this.#snapshots.receive(piece),
        members: () => this.#memberTable(),
        // What it has written before the removal was, this one may still need.
        wasRemoved: (member) => engine.cluster.wasRemoved(member) && engine.membersWritten,
        removed: () => void this.#toldRemoved(),
        unreachable: (to) => engine.replica.hint((raft) => raft.unreachable(to)),
        gone: (member) => {
          if (engine.replica.leader === member) engine.replica.hint((raft) => raft.leaderConfirmedDead(member));
        },
      },
    });
  }
}

function removedError(): CodedError {
  return new CodedError(
    'removed',
    'this member has been permanently removed from the cluster; to add this host again, empty its data directory and run: hyperedge members add',
  );
}

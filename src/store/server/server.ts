import { CodedError, messageOf } from '../../base/errors.ts';
import type { RpcService } from '../../wire/grpc/port.ts';
import type { NodeId } from '../core/raft/index.ts';
import { identified, storedState } from '../membership/bootstrap.ts';
import { hex, type Member } from '../membership/cluster.ts';
import { publishMember } from '../membership/publish.ts';
import { Removal, removedError } from '../membership/removal.ts';
import { RecoveringServer, type StoreServer } from '../recovery/recovery.ts';
import { createReplica } from '../replication/create-replica.ts';
import type { Engine } from '../replication/engine.ts';
import { leaveStoreCluster } from '../replication/leave.ts';
import { ALARM_CORRUPT } from '../replication/maintenance/alarms.ts';
import { requireLevel } from '../replication/maintenance/log-level.ts';
import { connectPeers } from '../replication/peers/connect-peers.ts';
import { GossipLink } from '../replication/peers/gossip-link.ts';
import type { Peers } from '../replication/peers/peers.ts';
import { Router } from '../replication/peers/router.ts';
import type { Replica } from '../replication/replica.ts';
import { Encoder } from '../services/encode.ts';
import { createServices } from '../services/services.ts';
import { CLUSTER_VERSION } from '../services/version.ts';
import { OpenParts } from './open-parts.ts';
import { createParts, type Parts } from './server-parts.ts';
import type { EtcdServer, EtcdServerDeps } from './server-port.ts';
import { type Settings, settingsOf } from './settings.ts';

/** Short grace period, because watches never end by themselves. Their clients reconnect to other members. */
const CLOSE_GRACE_MS = 100;
const FIRST_LEADER_MS = 5000;

export function createEtcdServer(deps: EtcdServerDeps): EtcdServer {
  return new RecoveringServer(deps, (own, replaces, damage) => new Server(own, replaces, damage));
}

class Server implements StoreServer {
  readonly #deps: EtcdServerDeps;
  readonly #settings: Settings;
  readonly #open = new OpenParts();
  readonly #parts: Parts;
  readonly #engine: Engine;
  readonly #removal: Removal;
  readonly #replaces: ReadonlyArray<readonly string[]> | undefined;
  readonly #damage: () => CodedError | undefined;
  #loggedLeader: NodeId | undefined;
  #loggedTerm = 0;
  #schemaLevel = 0;
  #savedPeers = Promise.resolve();
  #stopped = false;

  /** `damage`: an error in the data that was reported during the start. */
  constructor(
    deps: EtcdServerDeps,
    replaces: ReadonlyArray<readonly string[]> | undefined,
    damage: () => CodedError | undefined,
  ) {
    this.#deps = deps;
    this.#replaces = replaces;
    this.#damage = damage;
    this.#settings = settingsOf(deps);
    this.#parts = createParts(deps, this.#settings, this.#open);
    this.#engine = this.#parts.engine;
    this.#removal = new Removal(deps, this.#engine, () => this.#stopped);
    this.#parts.events.leadership.add(() => this.#leadership());
    this.#parts.events.members.add(() => this.#membersChanged());
  }

  get members(): readonly Member[] {
    return this.#engine.cluster.members;
  }

  get revision(): number {
    return this.#engine.machine.visible;
  }

  async start(): Promise<{ readonly host: string; readonly port: number }> {
    const { clock, log, listener } = this.#deps;
    const engine = this.#engine;
    const began = clock.monotonicMs();
    const state = await this.#identified();
    try {
      await engine.load(state, this.#parts.auth);
      requireLevel(engine.cluster.level, this.#settings.logLevel);
      await this.#changeSchema();
      const { memberId } = engine.identity;
      const isRemoved = engine.cluster.wasRemoved(hex(memberId));
      await this.#savePeers();
      const parts = { ...this.#parts, deps: this.#deps, settings: this.#settings, open: this.#open };
      const replica = createReplica(parts, hex(memberId), await storedState(state, this.#deps.storage));
      const service = this.#serve();
      await this.#listenToPeers(replica);
      engine.begin(replica, this.#parts.snapshots);
      if (isRemoved) {
        await this.#removal.atStart();
        if (this.#stopped) throw new CodedError('closed', 'stopped before member removal was committed');
        throw removedError();
      }
      await this.#ready(replica);
      const address = await listener.listen(service);
      this.#startParts();
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

  /** Creates the parts that need the store's identity. */
  #serve(): RpcService {
    const { clock, log, extensiveMetrics = false } = this.#deps;
    const { engine, auth, metrics, levels, guard, requireLeader, leaseQuorum } = this.#parts;
    const { settings, open } = { settings: this.#settings, open: this.#open };
    const { clusterId, memberId } = engine.identity;
    const peers = (): Peers | undefined => open.peers;
    const encoder = new Encoder(clusterId, memberId);
    const router = new Router({
      engine,
      encoder,
      clock,
      log,
      peers,
      authRevision: () => (auth.machine.enabled ? auth.machine.revision : 0),
      failed: () => {
        metrics.proposalsFailed += 1;
      },
    });
    const { service, watches, leases } = createServices({
      deps: this.#deps,
      engine,
      encoder,
      router,
      auth,
      guard,
      requireLeader,
      leaseQuorum,
      metrics,
      levels,
      peers,
      bytes: settings.random.bytes,
      defer: settings.defer,
      slowRequestMs: settings.slow.requestMs,
      extensiveMetrics,
    });
    open.encoder = encoder;
    open.router = router;
    open.watches = watches;
    open.leases = leases;
    return service;
  }

  async #listenToPeers(replica: Replica): Promise<void> {
    const { peers: peering } = this.#deps;
    if (peering === undefined) return;
    const peers = connectPeers(peering.dial, replica, {
      deps: this.#deps,
      settings: this.#settings,
      parts: this.#parts,
      open: this.#open,
      removal: this.#removal,
    });
    this.#open.peers = peers;
    await peering.listener.listen(peers.service);
    peers.setMembers(this.#engine.cluster.members);
  }

  /** Waits until a single member leads, and compares this store with those of the other members if required. */
  async #ready(replica: Replica): Promise<void> {
    const engine = this.#engine;
    // A single member waits only for its disk.
    while (replica.alone && !engine.leads) {
      await engine.leadership.change(FIRST_LEADER_MS);
      const damage = this.#damage();
      if (damage !== undefined) throw damage;
      if (this.#stopped) throw new CodedError('closed', 'stopped before the disk had free space');
    }
    if (this.#deps.compareAtStart === true && !replica.alone) await this.#parts.corruption.compareOwn();
  }

  #startParts(): void {
    const { gossip, clock } = this.#deps;
    const open = this.#open;
    if (gossip !== undefined) {
      open.gossip = new GossipLink({ hints: gossip, engine: this.#engine, clock });
      open.gossip.start();
    }
    open.leases?.start();
    open.watches?.start();
    this.#parts.maintenance.start();
    this.#parts.corruption.start();
  }

  /** Messages are etcd's, because tools that start etcd wait for some of them. */
  async #publish(): Promise<void> {
    const { clock, log, name, clientUrls, onPublished } = this.#deps;
    const engine = this.#engine;
    log.info(`enabled capabilities for version ${CLUSTER_VERSION}`);
    const published = await publishMember({
      engine,
      name,
      clientUrls,
      clock,
      log,
      command: (command) => this.#open.route.command(command),
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
    const { clock, log, listener } = this.#deps;
    await leaveStoreCluster({ engine: this.#engine, clock, log, listener, peers: () => this.#open.peers });
    await this.#close();
  }

  async #close(): Promise<void> {
    const { listener, peers, storage } = this.#deps;
    this.#stopped = true;
    const { maintenance, promoter, levels, corruption, requireLeader, snapshots } = this.#parts;
    this.#open.leases?.stop();
    this.#open.watches?.stop();
    for (const part of [maintenance, promoter, levels, corruption, requireLeader, snapshots]) part.stop();
    await this.#open.gossip?.stop();
    // Answers pending requests before the connections are closed.
    await this.#engine.stop();
    await this.#open.peers?.stop();
    await this.#savedPeers;
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
        formerCluster: this.#deps.formerCluster,
        dial: peers?.dial,
        forceNewCluster: this.#deps.forceNewCluster,
        replaces: this.#replaces,
        logLevel: this.#settings.logLevel,
        bytes: this.#settings.random.bytes,
        stopped: () => this.#stopped,
      });
    } catch (error) {
      await storage.close();
      throw error;
    }
  }

  #leadership(): void {
    const { replica } = this.#engine;
    const { metrics, requireLeader, promoter, levels, snapshots } = this.#parts;
    const { encoder, leases, router, gossip } = this.#open;
    metrics.leaderSeen(replica.leader);
    if (encoder !== undefined) encoder.term = replica.term;
    leases?.leadershipChanged();
    router?.leaderChanged();
    requireLeader.leaderChanged();
    promoter.consider();
    levels.consider();
    snapshots.changed();
    gossip?.publish();
    const { leader, term } = replica;
    if (replica.alone || (leader === this.#loggedLeader && term === this.#loggedTerm)) return;
    this.#loggedLeader = leader;
    this.#loggedTerm = term;
    if (leader === undefined) this.#deps.log.warn('cluster has no leader', { term });
    else this.#deps.log.info(leader === replica.id ? 'became leader' : 'leader changed', { leader, term });
  }

  #membersChanged(): void {
    const { cluster, replica } = this.#engine;
    if (this.#stopped) return;
    if (cluster.wasRemoved(replica.id)) {
      this.#removal.start();
      return;
    }
    this.#open.peers?.setMembers(cluster.members);
    void this.#savePeers();
    this.#parts.promoter.consider();
    this.#parts.levels.consider();
    const { alarms } = cluster;
    if (alarms.some((each) => each.member === replica.id && each.alarm === ALARM_CORRUPT))
      this.#deps.onFatal(new CodedError('dissents', 'the data of this member differs from the data of the majority'));
    this.#parts.snapshots.changed();
    try {
      requireLevel(cluster.level, this.#settings.logLevel);
    } catch (error) {
      this.#deps.onFatal(error as CodedError);
      return;
    }
    void this.#changeSchema();
  }

  /** Applies format changes that older builds cannot read, according to the log level. */
  async #changeSchema(): Promise<void> {
    const { level } = this.#engine.cluster;
    if (level === this.#schemaLevel) return;
    this.#schemaLevel = level;
    try {
      await this.#deps.storage.changeSchema(level);
    } catch (error) {
      if (this.#stopped) return;
      // The store also works with the former tables. The next start retries.
      this.#deps.log.warn('schema of the store not changed', { level, cause: messageOf(error) });
    }
  }

  /** Saves the peers for a start in which this member cannot read its store. */
  async #savePeers(): Promise<void> {
    const { peers, storage, log } = this.#deps;
    if (peers === undefined) return;
    const { cluster, identity } = this.#engine;
    const own = hex(identity.memberId);
    const others = cluster.members.filter(({ id }) => id !== own).map((member) => member.peerUrls);
    this.#savedPeers = this.#savedPeers
      .then(() => storage.savePeers(others.filter((urls) => urls.length > 0)))
      .catch((error: unknown) => log.warn('peer URLs of the other members not saved', { cause: messageOf(error) }));
    await this.#savedPeers;
  }
}

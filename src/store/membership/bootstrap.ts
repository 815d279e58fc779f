/** Determines the identity of a member and the state that raft starts from. */

import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import { emptyStorage, type StoredState } from '../core/raft/index.ts';
import type { DialPeer, LogState, PeerUrls, StoreLog } from '../disk/port.ts';
import { recoverAlone } from '../recovery/quorum-loss.ts';
import { becomeReplacement, queryPeer } from '../recovery/replacement.ts';
import { fromStored } from '../replication/peers/entry-codec.ts';
import { decodeMembers, type MemberTable, PeerPath } from '../replication/peers/peer-protocol.ts';
import { requestAdmission } from './admission.ts';
import { Cluster, clusterIdOf, hex, type Member, memberIdOf } from './cluster.ts';
import type { InitialCluster } from './initial-cluster.ts';
import { type FormerCluster, storeMissing, wipedError } from './join.ts';

export interface BootstrapDeps {
  readonly storage: StoreLog;
  readonly clock: Clock;
  readonly log: Log;
  readonly name: string;
  readonly peerUrls: readonly string[];
  readonly clientUrls: readonly string[];
  readonly initial: InitialCluster | undefined;
  /** Cluster to which this host's store has belonged (`EtcdServerDeps`). */
  readonly formerCluster: FormerCluster | undefined;
  readonly dial: DialPeer | undefined;
  /** Set for `--force-new-cluster` (`EtcdServerDeps`). */
  readonly forceNewCluster: (() => Promise<void>) | undefined;
  readonly bytes: (length: number) => Uint8Array;
  readonly stopped: () => boolean;
  /** The log level that this member supports. */
  readonly logLevel: number;
  /**
   * Peer URLs of the other members of a cluster that this member rejoins without its data. Undefined for a regular
   * start.
   */
  readonly replaces: ReadonlyArray<readonly string[]> | undefined;
}

const RETRY_MS = 500;
const REQUEST_TIMEOUT_MS = 3000;
/** Shorter timeout, so that a first start does not wait long for unreachable hosts. */
const FIRST_REQUEST_TIMEOUT_MS = 1000;

/** Returns the state of the store with an identity. Throws CodedError. */
export async function identified(state: LogState, deps: BootstrapDeps): Promise<LogState> {
  if (state.identity !== undefined) {
    const known = state.documents.has('cluster') ? state : await adopted(state, deps);
    return deps.forceNewCluster === undefined ? known : forced(known, deps.forceNewCluster, deps);
  }
  const { storage, initial, replaces } = deps;
  let cluster: Cluster;
  let identity: { clusterId: bigint; memberId: bigint };
  if (replaces !== undefined) ({ cluster, identity } = await replacing(replaces, deps));
  else if (initial === undefined) ({ cluster, identity } = await alone(deps));
  else if (initial.existing) ({ cluster, identity } = await joining(initial, deps));
  else ({ cluster, identity } = await founding(initial, deps));
  const first = emptyStorage(cluster.conf.voters);
  const documents = new Map([['cluster', cluster.encode()]]);
  const applied = { index: first.applied, compacted: 0, leasesGranted: [], leasesRevoked: [], documents };
  const { hardState, base } = first;
  await storage.initialise(identity, { entries: [], discards: [], hardState, base, applied });
  return { ...state, identity, hardState, base, applied: first.applied, documents };
}

function self(deps: BootstrapDeps, id: bigint): Member {
  return { id: hex(id), name: deps.name, peerUrls: deps.peerUrls, clientUrls: deps.clientUrls };
}

function conf(voters: readonly string[]): Cluster['conf'] {
  return { voters: [...voters].sort(), outgoing: [], learners: [], learnersNext: [] };
}

async function alone(deps: BootstrapDeps) {
  await requireNoSavedPeers(deps);
  const memberId = Buffer.from(deps.bytes(8)).readBigUInt64BE();
  const clusterId = Buffer.from(deps.bytes(8)).readBigUInt64BE();
  const cluster = new Cluster();
  cluster.put(self(deps, memberId));
  cluster.conf = conf([hex(memberId)]);
  cluster.version = String(deps.logLevel);
  return { cluster, identity: { clusterId, memberId } };
}

/**
 * Throws CodedError 'wiped' or 'store-missing' for a member with saved peers, or whose host has recorded its cluster:
 * it has lost its data, and bootstrapping would start a second history.
 */
async function requireNoSavedPeers({ storage, name, formerCluster }: BootstrapDeps): Promise<void> {
  const noted = await storage.savedPeers();
  if (noted !== undefined && noted.length > 0) throw wipedError(name);
  if (formerCluster !== undefined) throw storeMissing(formerCluster);
}

/** Removes the other members, so that this member continues alone with its data. */
async function forced(state: LogState, done: () => Promise<void>, { storage, log }: BootstrapDeps): Promise<LogState> {
  const alone = await recoverAlone(state, storage);
  if (alone !== state) {
    log.warn('this member is now a single-member cluster; add the other members again, with empty data directories');
  }
  await done();
  return alone;
}

/** Converts a store of an early build, which had no members: this member becomes its only voter. */
async function adopted(state: LogState, deps: BootstrapDeps): Promise<LogState> {
  const memberId = state.identity?.memberId ?? 0n;
  const cluster = new Cluster();
  cluster.put(self(deps, memberId));
  cluster.conf = conf([hex(memberId)]);
  const documents = new Map([['cluster', cluster.encode()]]);
  const { applied: index, compacted } = state;
  const applied = { index, compacted, leasesGranted: [], leasesRevoked: [], documents };
  await deps.storage.commit({ entries: [], discards: [], applied });
  return { ...state, documents };
}

/** Rejoins the cluster without data, under a new id. */
async function replacing(others: ReadonlyArray<readonly string[]>, deps: BootstrapDeps) {
  const { dial } = deps;
  if (dial === undefined) throw new CodedError('bad-config', 'a member that returns to a cluster needs peer URLs');
  if (deps.initial?.joins === true) return admitted(others, deps);
  const request = { name: deps.name, peerUrls: deps.peerUrls };
  const { clusterId, members, own } = await becomeReplacement(request, others, { ...deps, dial });
  return joined({ clusterId, members }, own);
}

/** Waits until the leader has added this member on request. */
async function admitted(others: PeerUrls, deps: BootstrapDeps) {
  const { dial, name, peerUrls } = deps;
  if (dial === undefined) throw new CodedError('bad-config', 'a member that joins needs peer URLs');
  const peers = others.filter((urls) => !urls.some((url) => peerUrls.includes(url)));
  const { clusterId, members, own } = await requestAdmission({ name, peerUrls }, peers, { ...deps, dial });
  return joined({ clusterId, members }, own);
}

function joined({ clusterId, members }: Pick<MemberTable, 'clusterId' | 'members'>, own: Member) {
  // The log is empty and has no configuration. The leader sends a snapshot.
  const cluster = new Cluster();
  for (const member of members) cluster.put(member);
  return { cluster, identity: { clusterId, memberId: BigInt(`0x${own.id}`) } };
}

type PeerQueryDeps = Pick<BootstrapDeps, 'name' | 'peerUrls' | 'dial'>;

/** Member table of each peer, or the error. */
async function queryMembers(
  { members }: InitialCluster,
  { name, dial }: PeerQueryDeps,
  timeoutMs: number,
): Promise<ReadonlyArray<PromiseSettledResult<MemberTable>>> {
  if (dial === undefined) return [];
  const others = members.filter((other) => other.name !== name);
  return Promise.allSettled(
    others.map(async ({ peerUrls }) =>
      decodeMembers(await queryPeer(dial, peerUrls, PeerPath.members, new Uint8Array(), timeoutMs)),
    ),
  );
}

const answered = (results: ReadonlyArray<PromiseSettledResult<MemberTable>>): readonly MemberTable[] =>
  results.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));

/** The member tables of reachable peers. */
async function tablesOf(initial: InitialCluster, deps: PeerQueryDeps): Promise<readonly MemberTable[]> {
  return answered(await queryMembers(initial, deps, FIRST_REQUEST_TIMEOUT_MS));
}

function ownIn({ members }: MemberTable, { peerUrls }: PeerQueryDeps): Member | undefined {
  return members.find((member) => member.peerUrls.some((url) => peerUrls.includes(url)));
}

/**
 * Whether the peers at these addresses form another cluster with another token. In etcd such a cluster has other member
 * IDs.
 */
function isForeign({ clusterId, token }: MemberTable, initial: InitialCluster): boolean {
  // An older build does not report its token. After a restore the ID may differ although the token is the same.
  if (token === undefined || token === initial.token) return false;
  return clusterId !== clusterIdOf(initial.members.map(({ peerUrls }) => memberIdOf(peerUrls, initial.token)));
}

/** Entry of this member in the tables of reachable peers. Throws CodedError 'wiped'. */
async function reportedMember(initial: InitialCluster, deps: PeerQueryDeps & Pick<BootstrapDeps, 'log'>) {
  for (const table of await tablesOf(initial, deps)) {
    if (isForeign(table, initial)) {
      const { clusterId, token } = table;
      deps.log.warn('another cluster with a different token listens at the addresses of initial-cluster', {
        cluster: hex(clusterId),
        token,
        own: initial.token,
        fix: 'set --initial-cluster-token to the token of the cluster',
      });
      continue;
    }
    const own = ownIn(table, deps);
    if (own !== undefined && own.name !== '') throw wipedError(own.name);
    if (own !== undefined) return { table, own };
  }
  return undefined;
}

/**
 * Whether a member that started as new under a removed ID has since been part of the cluster under another ID and has
 * lost its data. It then has to rejoin as a replacement.
 */
export async function wasReplaced(
  initial: InitialCluster,
  deps: PeerQueryDeps & Pick<BootstrapDeps, 'clock' | 'stopped'>,
): Promise<boolean> {
  while (!deps.stopped()) {
    const tables = await tablesOf(initial, deps);
    if (tables.length > 0) return tables.some((table) => ownIn(table, deps) !== undefined);
    await new Promise<void>((resolve) => deps.clock.setTimer(RETRY_MS, resolve));
  }
  return false;
}

async function founding(initial: InitialCluster, deps: BootstrapDeps) {
  const ids = new Map(initial.members.map((member) => [member.name, memberIdOf(member.peerUrls, initial.token)]));
  const memberId = ids.get(deps.name);
  if (memberId === undefined) {
    throw new CodedError(
      'bad-config',
      `initial-cluster does not name this member, ${deps.name}; add ${deps.name}=URL to it`,
    );
  }
  const reported = await reportedMember(initial, deps);
  if (reported !== undefined && reported.own.id !== hex(memberId)) return joined(reported.table, reported.own);
  await requireNoSavedPeers(deps);
  const cluster = new Cluster();
  for (const { name, peerUrls } of initial.members) {
    // The name and the client URLs stay empty until the member has started and publishes them.
    const id = ids.get(name) as bigint;
    cluster.put({ id: hex(id), name: '', peerUrls, clientUrls: [] });
  }
  cluster.conf = conf([...ids.values()].map(hex));
  // Only a single member sets its log level now: the builds of other members would be unknown.
  if (ids.size === 1) cluster.version = String(deps.logLevel);
  return { cluster, identity: { clusterId: clusterIdOf([...ids.values()]), memberId } };
}

/** Queries the peers until one of them reports this member's entry. */
async function joining(initial: InitialCluster, deps: BootstrapDeps) {
  const { log, clock } = deps;
  if (deps.dial === undefined) throw new CodedError('bad-config', 'a member that joins needs peer URLs');
  let lastCause = '';
  for (;;) {
    const results = await queryMembers(initial, deps, REQUEST_TIMEOUT_MS);
    const tables = answered(results);
    if (tables.length > 0) {
      if (initial.joins !== true || tables.some((table) => ownIn(table, deps) !== undefined))
        return asAdded(tables, deps);
      return admitted(
        initial.members.map(({ peerUrls }) => peerUrls),
        deps,
      );
    }
    const failure = results.findLast((outcome) => outcome.status === 'rejected');
    const cause = failure === undefined ? 'initial-cluster names no other member' : messageOf(failure.reason);
    if (cause !== lastCause) log.warn('waiting for a member of the cluster to answer', { cause });
    lastCause = cause;
    if (deps.stopped()) throw new CodedError('closed', 'stopped before a member of the cluster answered');
    await new Promise<void>((resolve) => clock.setTimer(RETRY_MS, resolve));
  }
}

/** Returns this member's entry in the reported tables. A peer that lags behind may not list the entry yet. */
function asAdded(tables: readonly MemberTable[], deps: BootstrapDeps) {
  const found = tables.flatMap((table) => {
    const own = ownIn(table, deps);
    return own === undefined ? [] : [{ table, own }];
  });
  const named = found.find(({ own }) => own.name !== '');
  if (named !== undefined) throw wipedError(named.own.name);
  const [first] = found;
  if (first === undefined) {
    throw new CodedError(
      'bad-config',
      `no member with the peer URL ${deps.peerUrls.join()} has been added to the cluster; run: hyperedge members add ${deps.name} ${deps.peerUrls.join()}`,
    );
  }
  return joined(first.table, first.own);
}

/** The state that raft starts from. */
export async function storedState(state: LogState, storage: StoreLog): Promise<StoredState> {
  const cluster = new Cluster();
  const document = state.documents.get('cluster');
  if (document !== undefined) cluster.decode(document);
  const entries = [];
  for (let from = state.base.index + 1; ; ) {
    const some = await storage.entries(from, 8 << 20);
    const last = some.at(-1);
    if (last === undefined) break;
    for (const entry of some) entries.push(fromStored(entry));
    from = last.index + 1;
  }
  const { hardState, base, applied } = state;
  const last = entries.at(-1)?.index ?? base.index;
  return {
    hardState: { ...hardState, commit: Math.min(hardState.commit, last) },
    base,
    applied,
    conf: cluster.conf,
    entries,
    terms: [],
  };
}

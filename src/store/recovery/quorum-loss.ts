/**
 * Restarts a store with its existing data: the survivor of a cluster without a quorum, or a snapshot that becomes the
 * first state of a new cluster. The log's base moves to the applied index, so that members added later receive a
 * snapshot without the previous membership. Later entries are kept and count as committed, except configuration
 * changes.
 */

import { CodedError } from '../../base/errors.ts';
import { encodeDeleteEvent } from '../core/messages/event.ts';
import {
  EntryKind,
  type LogBatch,
  type LogPosition,
  type LogState,
  type StoredEntry,
  type StoreIdentity,
  type StoreLog,
} from '../disk/port.ts';
import { Cluster, clusterIdOf, hex, type Member, memberIdOf } from '../membership/cluster.ts';
import type { InitialMember } from '../membership/initial-cluster.ts';
import { decodeConfChange, encodeCommand } from '../replication/peers/entry-codec.ts';

const CLUSTER = 'cluster';
const NOTHING = new Uint8Array();

/** End of a store's log, and its membership. */
export interface StoreEnd {
  readonly memberId: string;
  readonly clusterId: string;
  readonly name: string;
  readonly term: number;
  readonly lastIndex: number;
  readonly lastTerm: number;
  readonly commit: number;
  /** Last revision known to be committed. */
  readonly revision: number;
  /** Last revision in the log. Revisions above `revision` may or may not have been acknowledged. */
  readonly lastRevision: number;
  readonly members: readonly Member[];
  readonly voters: readonly string[];
}

/** Reads and verifies the whole store. Throws CodedError 'corrupt', or 'not-found' when it is empty. */
export async function endOf(state: LogState, storage: StoreLog): Promise<StoreEnd> {
  const { identity, base, hardState } = state;
  if (identity === undefined) throw new CodedError('not-found', 'the store is empty: it has never started');
  const commit = Math.max(hardState.commit, base.index, state.applied);
  const { last, revision, lastRevision } = await ends(state, storage, commit);
  const cluster = clusterOf(state);
  const memberId = hex(identity.memberId);
  return {
    memberId,
    clusterId: hex(identity.clusterId),
    name: cluster.get(memberId)?.name ?? '',
    term: hardState.term,
    lastIndex: last.index,
    lastTerm: last.term,
    commit,
    revision,
    lastRevision,
    members: cluster.members,
    voters: cluster.conf.voters,
  };
}

async function ends(state: LogState, storage: StoreLog, commit: number) {
  let revision = Math.max(1, state.compacted);
  await storage.load(commit, (rows) => {
    revision = rows.at(-1)?.revision ?? revision;
  });
  let lastRevision = revision;
  let last: LogPosition = state.base;
  for await (const entry of entriesFrom(storage, state.base.index + 1)) {
    last = entry;
    lastRevision = Math.max(lastRevision, entry.revision);
  }
  return { last: { index: last.index, term: last.term }, revision, lastRevision };
}

async function* entriesFrom(storage: StoreLog, index: number): AsyncGenerator<StoredEntry> {
  for (let from = index; ; ) {
    const some = await storage.entries(from, 4 << 20);
    const last = some.at(-1);
    if (last === undefined) return;
    yield* some;
    from = last.index + 1;
  }
}

function clusterOf(state: LogState): Cluster {
  const cluster = new Cluster();
  const document = state.documents.get(CLUSTER);
  if (document !== undefined) cluster.decode(document);
  return cluster;
}

/**
 * etcd's `--force-new-cluster`: this member becomes the whole cluster and keeps its log. Changes nothing when it
 * already is the only member. Throws CodedError 'removed' when the cluster had removed it before.
 */
export async function recoverAlone(state: LogState, storage: StoreLog): Promise<LogState> {
  if (state.identity === undefined)
    throw new CodedError('not-found', 'the store is empty: there is nothing to recover');
  const id = hex(state.identity.memberId);
  const cluster = clusterOf(state);
  if (cluster.wasRemoved(id)) {
    throw new CodedError(
      'removed',
      'this member had been removed from its cluster: recover another one, or restore a snapshot',
    );
  }
  const { rest, base, known } = await withoutConfChanges(state, storage);
  const others = [...new Set([...cluster.members.map((member) => member.id), ...cluster.conf.voters, ...known])];
  const removed = others.filter((other) => other !== id);
  if (removed.length === 0 && cluster.conf.voters.join() === id) return state;
  if (cluster.get(id) === undefined) cluster.put({ id, name: '', peerUrls: [], clientUrls: [] });
  cluster.applyConf({ steps: removed.map((other) => ({ op: 'remove', id: other })) }, votersOnly([id]));
  const again = { ...(await inNewTerm(state, storage, rest)), base };
  const documents = new Map([[CLUSTER, cluster.encode()]]);
  await storage.commit({ ...again, applied: unchanged(state, documents) });
  return { ...state, hardState: again.hardState, base, documents: new Map([...state.documents, ...documents]) };
}

export interface NewCluster {
  /** Name of this member in `members`. */
  readonly name: string;
  readonly members: readonly InitialMember[];
  readonly token: string;
  /**
   * Number added to the revision. All revisions up to the result count as compacted, so that no client confuses the new
   * history with the old history.
   */
  readonly bumpRevision: number;
  /** Whether to reject a snapshot of a cluster with other members, which may also have the data. */
  readonly onlyAlone?: boolean;
}

export interface Restored {
  readonly clusterId: string;
  readonly memberId: string;
  readonly revision: number;
}

/**
 * Turns an opened copy of a snapshot into the first state of a member of a new cluster. Members that restore the same
 * snapshot with the same list form one cluster. Throws CodedError 'bad-config', 'not-found', 'corrupt', 'has-others'.
 */
export async function restoreAs(state: LogState, storage: StoreLog, wanted: NewCluster): Promise<Restored> {
  const { lastRevision, lastIndex, members, memberId } = await endOf(state, storage);
  const { identity, document } = bootstrapped(wanted);
  const { rest, base, known } = await withoutConfChanges(state, storage);
  const others = new Set([...members.map(({ id }) => id), ...known].filter((id) => id !== memberId));
  if (wanted.onlyAlone === true && others.size > 0)
    throw new CodedError('has-others', `the snapshot is of a cluster with other members (${[...others].join()})`);
  const revision = lastRevision + wanted.bumpRevision;
  const term = Math.max(state.hardState.term, base.term);
  const bump = wanted.bumpRevision > 0 ? bumped(revision, { index: lastIndex + 1, term }) : [];
  const again = { ...(await inNewTerm(state, storage, [...rest, ...bump])), base };
  const documents = new Map([[CLUSTER, document]]);
  await storage.initialise(identity, { ...again, reserved: revision, applied: unchanged(state, documents) });
  return { clusterId: hex(identity.clusterId), memberId: hex(identity.memberId), revision };
}

/** Identity and configuration of a new cluster. Throws CodedError 'bad-config'. */
export function bootstrapped({ name, members, token }: Pick<NewCluster, 'name' | 'members' | 'token'>): {
  readonly identity: StoreIdentity;
  readonly document: Uint8Array;
} {
  const ids = new Map(members.map((member) => [member.name, memberIdOf(member.peerUrls, token)]));
  const memberId = ids.get(name);
  if (memberId === undefined) {
    throw new CodedError('bad-config', `initial-cluster does not name ${name}; add ${name}=URL to it, or set the name`);
  }
  const cluster = new Cluster();
  for (const member of members) {
    cluster.put({ id: hex(ids.get(member.name) as bigint), name: '', peerUrls: member.peerUrls, clientUrls: [] });
  }
  cluster.conf = votersOnly([...ids.values()].map(hex));
  return { identity: { clusterId: clusterIdOf([...ids.values()]), memberId }, document: cluster.encode() };
}

function votersOnly(voters: readonly string[]): Cluster['conf'] {
  return { voters: [...voters].sort(), outgoing: [], learners: [], learnersNext: [] };
}

/**
 * Returns the entries from the first configuration change on, with every configuration change replaced by a no-op; the
 * new base of the log; and the IDs of the members in the replaced changes.
 */
async function withoutConfChanges(
  state: LogState,
  storage: StoreLog,
): Promise<{ readonly rest: readonly StoredEntry[]; readonly base: LogPosition; readonly known: readonly string[] }> {
  let base = state.base;
  const rest: StoredEntry[] = [];
  const known: string[] = [];
  for await (const entry of entriesFrom(storage, Math.max(state.applied, state.base.index + 1))) {
    if (entry.index <= state.applied) {
      base = { index: entry.index, term: entry.term };
      continue;
    }
    const conf = entry.kind === EntryKind.conf;
    if (conf) known.push(...decodeConfChange(entry.body).steps.map(({ id }) => id));
    if (conf || rest.length > 0) rest.push(conf ? { ...entry, kind: EntryKind.noop, body: NOTHING } : entry);
  }
  return { rest, base, known };
}

/** Commits everything in the log, in a new term. */
async function inNewTerm(
  state: LogState,
  storage: StoreLog,
  entries: readonly StoredEntry[],
): Promise<Pick<LogBatch, 'entries' | 'discards'> & Required<Pick<LogBatch, 'hardState'>>> {
  let commit = entries.at(-1)?.index ?? state.base.index;
  let term = Math.max(state.hardState.term, state.base.term);
  for await (const entry of entriesFrom(storage, state.base.index + 1)) {
    commit = Math.max(commit, entry.index);
    term = Math.max(term, entry.term);
  }
  return { entries, discards: [], hardState: { term: term + 1, vote: undefined, commit } };
}

function unchanged(
  { applied: index, compacted }: LogState,
  documents: ReadonlyMap<string, Uint8Array>,
): NonNullable<LogBatch['applied']> {
  return { index, compacted, leasesGranted: [], leasesRevoked: [], documents };
}

/**
 * Entries that advance the store to `revision`: a revision that deletes a key that never existed, and a compaction at
 * this revision.
 */
function bumped(revision: number, { index, term }: LogPosition): StoredEntry[] {
  const event = encodeDeleteEvent('\0', revision).field;
  const compact = encodeCommand({ type: 'compact', revision });
  return [
    { index, term, kind: EntryKind.revision, revision, lease: 0n, body: event },
    { index: index + 1, term, kind: EntryKind.command, revision: 0, lease: 0n, body: compact.subarray(1) },
  ];
}

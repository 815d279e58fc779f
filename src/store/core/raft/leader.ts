/** Raft rules of the leader: replication, commit index, heartbeats and leadership transfer. */
import { assert } from '../../../base/errors.ts';
import { RaftError } from './errors.ts';
import { entryBytes } from './log.ts';
import type { RaftNode } from './node.ts';
import type { Progress } from './progress.ts';
import type { ConfChange, Entry, MessageOf, NodeId } from './types.ts';

/** Turns a candidate that won its election into the leader. */
export function becomeLeader(node: RaftNode): void {
  node.becomeLeader();
  // Commit an entry of the current term first (paper §5.4.2, §8); until then no earlier entry is committed and no read
  // is served.
  appendOwn(node, [{ ...node.position(), kind: 'noop' }]);
  broadcastAppend(node);
}

/** Appends entries to the leader's own log. They count towards the quorum once they are on disk. */
export function appendOwn(node: RaftNode, entries: readonly Entry[]): void {
  for (const entry of entries) node.uncommittedBytes += entryBytes(entry);
  node.log.append(entries);
}

/** Handles a completed write of the leader's own log. */
export function leaderWritten(node: RaftNode): void {
  const own = node.progress.get(node.id);
  if (own?.accept(node.log.stable) && advanceCommit(node)) broadcastAppend(node);
}

/**
 * Advances the commit index to the highest index that a quorum has on disk, if its entry is of this term (paper §5.4.2,
 * figure 8). Returns true if it advanced.
 */
export function advanceCommit(node: RaftNode): boolean {
  const { log } = node;
  const index = Math.min(
    node.membership.reached((id) => node.progress.get(id)?.match ?? 0),
    log.last,
  );
  if (index <= log.committed || log.term(index) !== node.term) return false;
  for (const entry of log.slice(log.committed + 1, index, Number.POSITIVE_INFINITY))
    node.uncommittedBytes = Math.max(0, node.uncommittedBytes - entryBytes(entry));
  log.committed = index;
  for (const read of node.reads.takeEarly()) registerRead(node, read.context, read.from);
  return true;
}

export function tickLeader(node: RaftNode): void {
  node.electionElapsed++;
  node.heartbeatElapsed++;
  if (node.electionElapsed >= node.electionTicks) {
    node.electionElapsed = 0;
    // The transfer did not complete within an election timeout, so it is cancelled and writes are accepted again.
    node.transferTarget = undefined;
    if (!quorumActive(node)) {
      node.becomeFollower(node.term, undefined);
      return;
    }
    for (const progress of node.progress.values()) {
      progress.wasActive = progress.active;
      progress.active = false;
    }
  }
  for (const [id, progress] of node.peers()) {
    if (progress.state !== 'snapshot') continue;
    if (++progress.snapshotIdle >= node.electionTicks * SNAPSHOT_PATIENCE) snapshotDone(node, id, false);
  }
  if (node.heartbeatElapsed >= node.heartbeatTicks) broadcastHeartbeat(node);
}

/** Election timeouts without progress after which a snapshot stream counts as failed. */
const SNAPSHOT_PATIENCE = 3;

/**
 * Whether a quorum is active. A leader without an active quorum cannot commit and steps down, so that clients do not
 * wait (thesis §6.2).
 */
function quorumActive(node: RaftNode): boolean {
  const active = new Map<NodeId, boolean>();
  for (const [id, progress] of node.progress) active.set(id, id === node.id || progress.active);
  return node.membership.voteResult(active) === 'won';
}

export function broadcastHeartbeat(node: RaftNode): void {
  node.heartbeatElapsed = 0;
  node.reads.round++;
  node.reads.roundPending = false;
  for (const [to, progress] of node.peers())
    node.send({
      type: 'heartbeat',
      to,
      // The commit index sent never exceeds the entries that the member is known to have.
      commit: Math.min(progress.match, node.log.committed),
      round: node.reads.round,
    });
  confirmReads(node);
}

export function broadcastAppend(node: RaftNode): void {
  for (const [id, progress] of node.peers())
    sendAppend(node, id, progress, progress.state === 'probe' || progress.sentCommit < node.log.committed, true);
}

/**
 * Sends the entries that `id` needs next. Without entries, it sends the commit index if `evenEmpty` is set. If the
 * entries are not in memory, it requests a disk read or a snapshot stream from the caller. Returns true if entries were
 * sent. With `news`, a message without entries requests no response, unless `id` is being probed for its log position.
 */
function sendAppend(node: RaftNode, id: NodeId, progress: Progress, evenEmpty: boolean, news = false): boolean {
  if (progress.paused) return false;
  const { log, config } = node;
  const prevTerm = log.term(progress.next - 1);
  if (prevTerm === undefined) {
    sendSnapshot(node, id, progress);
    return false;
  }
  let entries: readonly Entry[] = [];
  if (progress.next <= log.last) {
    if (log.has(progress.next)) entries = log.slice(progress.next, log.last, config.maxAppendBytes);
    else if (progress.state === 'replicate') {
      readEntries(node, progress);
      return false;
    }
    // A probe without entries also finds where the logs diverge, and needs no disk read.
  }
  if (entries.length === 0 && !evenEmpty && progress.state !== 'probe') return false;
  const quiet = news && entries.length === 0 && progress.state === 'replicate';
  return transmit(node, id, progress, prevTerm, entries, quiet);
}

function transmit(
  node: RaftNode,
  to: NodeId,
  progress: Progress,
  prevTerm: number,
  entries: readonly Entry[],
  quiet = false,
): boolean {
  node.send({
    type: 'append',
    to,
    prevIndex: progress.next - 1,
    prevTerm,
    entries,
    commit: node.log.committed,
    ...(quiet ? { quiet } : {}),
  });
  progress.sentCommit = node.log.committed;
  const last = entries.at(-1);
  if (last !== undefined) {
    let bytes = 0;
    for (const entry of entries) bytes += entryBytes(entry);
    progress.sent(last.index, bytes);
  } else if (progress.state === 'probe') progress.sent(progress.next - 1, 0);
  return last !== undefined;
}

/** Sends entries until the in-flight limit is reached. */
function sendAll(node: RaftNode, id: NodeId, progress: Progress): void {
  while (progress.state === 'replicate' && sendAppend(node, id, progress, false));
}

function readEntries(node: RaftNode, progress: Progress): void {
  progress.reading = progress.next;
  if (!node.entryReads.some((read) => read.from === progress.next))
    node.entryReads.push({ from: progress.next, maxBytes: node.config.maxAppendBytes });
}

/** Handles entries that the caller has read from disk. The list is empty if they were compacted meanwhile. */
export function entriesRead(node: RaftNode, from: number, entries: readonly Entry[]): void {
  if (node.role !== 'leader') return;
  for (const [id, progress] of node.peers()) {
    if (progress.reading !== from) continue;
    progress.reading = undefined;
    if (progress.paused || progress.next !== from) continue;
    const prevTerm = node.log.term(from - 1);
    if (prevTerm === undefined) {
      sendSnapshot(node, id, progress);
      continue;
    }
    assert(entries.length > 0, 'entries that are not compacted can be read');
    // The entries may have been overwritten since, if leadership was lost and won again. Then they are read again.
    const good = entries.every((entry, i) => entry.index === from + i && node.log.term(entry.index) === entry.term);
    if (good) transmit(node, id, progress, prevTerm, entries);
    sendAll(node, id, progress);
  }
}

function sendSnapshot(node: RaftNode, to: NodeId, progress: Progress): void {
  // An inactive member gets no snapshot stream.
  if (!progress.active) return;
  progress.becomeSnapshot(node.log.emitted);
  node.snapshotsToSend.push({ to, index: Math.max(node.log.base.index, progress.match + 1) });
}

/** Records progress of the snapshot stream to `id`. */
export function snapshotProgress(node: RaftNode, id: NodeId, index: number): void {
  const progress = node.progress.get(id);
  if (progress?.state !== 'snapshot') return;
  progress.snapshotIndex = index;
  progress.snapshotIdle = 0;
}

/**
 * Ends the snapshot state of `id`. Its next response reports its log position, whether or not the snapshot was
 * delivered.
 */
export function snapshotDone(node: RaftNode, id: NodeId, delivered: boolean): void {
  const progress = node.progress.get(id);
  if (progress?.state !== 'snapshot') return;
  if (!delivered) progress.snapshotIndex = 0;
  progress.becomeProbe();
  progress.probing = true;
}

/** Returns `id` to the probe state, because messages in flight may be lost. */
export function unreachable(node: RaftNode, id: NodeId): void {
  const progress = node.progress.get(id);
  if (progress?.state === 'replicate') progress.becomeProbe();
}

export function onAppendResp(node: RaftNode, message: MessageOf<'appendResp'>): void {
  const progress = node.progress.get(message.from);
  if (progress === undefined) return;
  if (message.index > node.log.last)
    throw new RaftError('BadMessage', `appendResp from ${message.from}: index ${message.index} was never sent`);
  progress.active = true;
  if (message.rejected) {
    // Skip whole terms instead of single entries (paper §5.3, end).
    const { index } = node.log.agreement(message.hintIndex, message.hintTerm);
    if (progress.reject(message.index, index)) sendAppend(node, message.from, progress, true);
    return;
  }
  const wasPaused = progress.paused;
  const news = progress.accept(message.index);
  if (progress.state === 'probe' && (news || message.index === progress.match)) progress.becomeReplicate();
  else if (progress.state === 'snapshot' && progress.match >= node.log.base.index) progress.becomeReplicate();
  if (news) {
    if (advanceCommit(node)) broadcastAppend(node);
    else if (wasPaused) sendAppend(node, message.from, progress, true);
    if (message.from === node.transferTarget) sendTimeoutNow(node);
  }
  sendAll(node, message.from, progress);
}

export function onHeartbeatResp(node: RaftNode, message: MessageOf<'heartbeatResp'>): void {
  const progress = node.progress.get(message.from);
  if (progress === undefined) return;
  progress.alive();
  progress.round = Math.max(progress.round, Math.min(message.round, node.reads.round));
  if (progress.match < node.log.last || progress.state === 'probe') sendAppend(node, message.from, progress, true);
  confirmReads(node);
}

/** Registers a read at the leader. */
export function registerRead(node: RaftNode, context: string, from: NodeId | undefined): void {
  if (node.log.term(node.log.committed) !== node.term) node.reads.postpone({ context, from });
  else node.reads.add({ context, from }, node.log.committed);
}

function confirmReads(node: RaftNode): void {
  const round = node.membership.reached((id) =>
    id === node.id ? Number.POSITIVE_INFINITY : (node.progress.get(id)?.round ?? 0),
  );
  for (const read of node.reads.confirmed(Math.min(round, node.reads.round)))
    node.ackRead(read.context, read.from, read.index);
}

/**
 * Proposes a change of the configuration. Only one change can be pending: another change is accepted after the pending
 * change has been applied on this member.
 */
export function proposeConf(node: RaftNode, change: ConfChange): Entry {
  if (node.confIndex > node.log.emitted)
    throw new RaftError('ConfChangePending', `the change at index ${node.confIndex} has not been applied yet`);
  node.membership.after(change);
  const entry: Entry = { ...node.position(), kind: 'conf', change };
  appendOwn(node, [entry]);
  node.confIndex = entry.index;
  broadcastAppend(node);
  return entry;
}

/** Updates the leader's state after its configuration changed. */
export function leaderReconfigured(node: RaftNode): void {
  node.trackMembers();
  if (node.transferTarget !== undefined && !node.membership.isVoter(node.transferTarget))
    node.transferTarget = undefined;
  // A smaller quorum may commit more.
  advanceCommit(node);
  broadcastAppend(node);
  if (!node.membership.isVoter(node.id)) node.becomeFollower(node.term, undefined);
}

/** Proposes to leave a joint configuration as soon as it has been applied. */
export function leaveJoint(node: RaftNode): void {
  if (node.role === 'leader' && node.membership.joint && node.confIndex <= node.log.emitted)
    proposeConf(node, { steps: [] });
}

/**
 * Transfers leadership to `target` (thesis §3.10): brings its log up to date, then requests that it campaigns at once.
 */
export function transferLeadership(node: RaftNode, target: NodeId): void {
  const progress = node.progress.get(target);
  if (target === node.id) return;
  if (progress === undefined || !node.membership.isVoter(target))
    throw new RaftError('BadTarget', `member ${target} is not a voter`);
  if (node.transferTarget === target) return;
  node.transferTarget = target;
  // The transfer has one election timeout to complete.
  node.electionElapsed = 0;
  if (progress.match === node.log.last) sendTimeoutNow(node);
  else sendAppend(node, target, progress, true);
}

function sendTimeoutNow(node: RaftNode): void {
  const target = node.transferTarget;
  if (target !== undefined && node.progress.get(target)?.match === node.log.last)
    node.send({ type: 'timeoutNow', to: target });
}

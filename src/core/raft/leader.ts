import { assert } from '../../base/errors.ts';
import { RaftError } from './errors.ts';
import { entryBytes } from './log.ts';
import type { RaftNode } from './node.ts';
import type { Progress } from './progress.ts';
import type { ConfChange, Entry, MessageOf, NodeId } from './types.ts';

/** A candidate has won. */
export function lead(node: RaftNode): void {
  node.becomeLeader();
  // Nothing of earlier terms can be committed, and no read served, before something of this one is (paper §5.4.2, §8).
  appendOwn(node, [{ ...node.position(), kind: 'noop' }]);
  broadcastAppend(node);
}

/** Puts entries into the leader's own log. They count as its own once they are on disk. */
export function appendOwn(node: RaftNode, entries: readonly Entry[]): void {
  for (const entry of entries) node.uncommittedBytes += entryBytes(entry);
  node.log.append(entries);
}

/** The leader's log is on disk up to here. */
export function leaderWritten(node: RaftNode): void {
  const own = node.progress.get(node.id);
  if (own?.accept(node.log.stable) && advanceCommit(node)) broadcastAppend(node);
}

/**
 * Commits what a quorum has on disk, if it is of this term (paper §5.4.2, figure 8). True if that is more than before.
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
    // A transfer that has not worked by now has failed; write again.
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

/** Election timeouts without progress after which a snapshot's stream is taken for dead. */
const SNAPSHOT_PATIENCE = 3;

/** A leader that hears from no quorum cannot commit and must not make anybody wait (thesis §6.2). */
function quorumActive(node: RaftNode): boolean {
  const heard = new Map<NodeId, boolean>();
  for (const [id, progress] of node.progress) heard.set(id, id === node.id || progress.active);
  return node.membership.voteResult(heard) === 'won';
}

export function broadcastHeartbeat(node: RaftNode): void {
  node.heartbeatElapsed = 0;
  node.reads.round++;
  node.reads.roundWanted = false;
  for (const [to, progress] of node.peers())
    node.send({
      type: 'heartbeat',
      to,
      // Never more than the member is known to have.
      commit: Math.min(progress.match, node.log.committed),
      round: node.reads.round,
    });
  confirmReads(node);
}

export function broadcastAppend(node: RaftNode): void {
  for (const [id, progress] of node.peers())
    sendAppend(node, id, progress, progress.state === 'probe' || progress.toldCommit < node.log.committed, true);
}

/**
 * Sends what `id` needs next: entries, or, if `evenEmpty`, the news of the commit index; or asks the shell to read
 * entries or to stream a snapshot. True if entries were sent. `news`: without entries it only informs; a follower that
 * is probed for liveness, or for its log position, has to respond.
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
    // A probe without entries finds out where the logs part as well, and costs no read.
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
  progress.toldCommit = node.log.committed;
  const last = entries.at(-1);
  if (last !== undefined) {
    let bytes = 0;
    for (const entry of entries) bytes += entryBytes(entry);
    progress.sent(last.index, bytes);
  } else if (progress.state === 'probe') progress.sent(progress.next - 1, 0);
  return last !== undefined;
}

/** Sends as much as may be in flight. */
function sendAll(node: RaftNode, id: NodeId, progress: Progress): void {
  while (progress.state === 'replicate' && sendAppend(node, id, progress, false));
}

function readEntries(node: RaftNode, progress: Progress): void {
  progress.reading = progress.next;
  if (!node.entryReads.some((read) => read.from === progress.next))
    node.entryReads.push({ from: progress.next, maxBytes: node.config.maxAppendBytes });
}

/** The shell has read entries, or none if they have been compacted meanwhile. */
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
    // What was read may have been overwritten since, if leadership was lost and won again; then it is read again.
    const good = entries.every((entry, i) => entry.index === from + i && node.log.term(entry.index) === entry.term);
    if (good) transmit(node, id, progress, prevTerm, entries);
    sendAll(node, id, progress);
  }
}

function sendSnapshot(node: RaftNode, to: NodeId, progress: Progress): void {
  // A stream to somebody who is not there only costs.
  if (!progress.active) return;
  progress.becomeSnapshot(node.log.emitted);
  node.snapshotsToSend.push({ to, index: Math.max(node.log.base.index, progress.match + 1) });
}

/** The stream of a snapshot of `index` to `id` moves. */
export function snapshotProgress(node: RaftNode, id: NodeId, index: number): void {
  const progress = node.progress.get(id);
  if (progress?.state !== 'snapshot') return;
  progress.snapshotIndex = index;
  progress.snapshotIdle = 0;
}

/** The stream to `id` has ended. Either way its next sign of life says where it stands. */
export function snapshotDone(node: RaftNode, id: NodeId, delivered: boolean): void {
  const progress = node.progress.get(id);
  if (progress?.state !== 'snapshot') return;
  if (!delivered) progress.snapshotIndex = 0;
  progress.becomeProbe();
  progress.probing = true;
}

/** The transport could not deliver to `id`: what was sent on trust may be lost. */
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
    // Whole terms are skipped instead of single entries (paper §5.3, end).
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

/** A read asked of the leader. */
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

/** Proposes a change of the configuration. One at a time: the next only after this one has been applied here. */
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

/** The configuration has changed under the leader. */
export function leaderReconfigured(node: RaftNode): void {
  node.trackMembers();
  if (node.transferTarget !== undefined && !node.membership.isVoter(node.transferTarget))
    node.transferTarget = undefined;
  // A smaller quorum may commit more.
  advanceCommit(node);
  broadcastAppend(node);
  if (!node.membership.isVoter(node.id)) node.becomeFollower(node.term, undefined);
}

/** A joint configuration is left as soon as it has been applied. */
export function leaveJoint(node: RaftNode): void {
  if (node.role === 'leader' && node.membership.joint && node.confIndex <= node.log.emitted)
    proposeConf(node, { steps: [] });
}

/** Hands leadership to `target` (thesis §3.10): brings it up to date, then has it campaign at once. */
export function transfer(node: RaftNode, target: NodeId): void {
  const progress = node.progress.get(target);
  if (target === node.id) return;
  if (progress === undefined || !node.membership.isVoter(target))
    throw new RaftError('BadTarget', `member ${target} does not vote`);
  if (node.transferTarget === target) return;
  node.transferTarget = target;
  // It has one election timeout.
  node.electionElapsed = 0;
  if (progress.match === node.log.last) sendTimeoutNow(node);
  else sendAppend(node, target, progress, true);
}

function sendTimeoutNow(node: RaftNode): void {
  const target = node.transferTarget;
  if (target !== undefined && node.progress.get(target)?.match === node.log.last)
    node.send({ type: 'timeoutNow', to: target });
}

import { RaftError } from './errors.ts';
import { Membership } from './membership.ts';
import type { RaftNode } from './node.ts';
import type { MessageOf } from './types.ts';

/** Records a message from the leader of this term. Throws `Diverged` if this member has another leader in this term. */
export function onLeaderMessage(node: RaftNode, leader: string): void {
  if (node.role === 'leader' || (node.leader !== undefined && node.leader !== leader))
    throw new RaftError('Diverged', `${leader} and ${node.leader} are both leader in term ${node.term}`);
  if (node.role !== 'follower' || node.leader === undefined) node.becomeFollower(node.term, leader);
  node.electionElapsed = 0;
  node.hints.onLeaderMessage(leader);
}

export function onAppend(node: RaftNode, message: MessageOf<'append'>): void {
  const { log } = node;
  const { from: to, prevIndex, prevTerm, entries } = message;
  const foreign = entries.find(
    (entry) => entry.index <= log.committed && (log.term(entry.index) ?? entry.term) !== entry.term,
  );
  if (foreign !== undefined || (prevIndex === log.committed && log.term(prevIndex) !== prevTerm))
    throw new RaftError(
      'Diverged',
      `entry ${foreign?.index ?? prevIndex} is committed on this member with another term than ${to} has`,
    );
  if (prevIndex < log.committed) {
    // The message is outdated. Committed entries are in the log of every later leader, so they match.
    if (!message.quiet) accept(node, to, log.committed);
    return;
  }
  if (log.term(prevIndex) !== prevTerm) {
    const hint = log.agreement(prevIndex, prevTerm);
    node.promise({
      type: 'appendResp',
      to,
      index: prevIndex,
      rejected: true,
      hintIndex: hint.index,
      hintTerm: hint.term,
    });
    return;
  }
  const agreed = log.merge(prevIndex, entries);
  log.committed = Math.max(log.committed, Math.min(message.commit, agreed));
  if (!message.quiet) accept(node, to, agreed);
}

export function onHeartbeat(node: RaftNode, message: MessageOf<'heartbeat'>): void {
  if (message.commit > node.log.last)
    throw new RaftError(
      'LogLost',
      `the leader knows of entries up to ${message.commit} that this member acknowledged; the log ends at ${node.log.last}`,
    );
  node.log.committed = Math.max(node.log.committed, message.commit);
  node.promise({ type: 'heartbeatResp', to: message.from, round: message.round });
}

/** Installs a complete snapshot. It replaces the whole log, unless the log already extends beyond it. */
export function onSnapshot(node: RaftNode, message: MessageOf<'snapshot'>): void {
  const { log } = node;
  const { snapshot, from: to } = message;
  if (snapshot.index > log.committed) {
    if (log.term(snapshot.index) === snapshot.term) log.committed = snapshot.index;
    else {
      log.restore(snapshot);
      node.membership = new Membership(snapshot.conf);
    }
  }
  accept(node, to, log.committed);
}

function accept(node: RaftNode, to: string, index: number): void {
  node.promise({ type: 'appendResp', to, index, rejected: false, hintIndex: 0, hintTerm: 0 });
}

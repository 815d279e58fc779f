import { becomeLeader } from './leader.ts';
import type { RaftNode } from './node.ts';
import type { MessageOf, NodeId } from './types.ts';

/** Advances the election timeout of a follower or candidate. */
export function tickElection(node: RaftNode): void {
  node.electionElapsed++;
  if (!node.promotable) return;
  if (hurried(node)) {
    campaign(node, 'pre');
    return;
  }
  if (node.electionElapsed < node.electionTimeout) return;
  if (node.hints.veto(node.leader)) {
    // Gossip reports that other members still reach the leader, so the election is postponed. Votes for other
    // candidates are not delayed.
    node.electionTimeout += node.electionTicks;
    return;
  }
  campaign(node, 'pre');
}

/**
 * Whether to campaign before the election timeout. A leader that gossip has confirmed dead is replaced at once: the
 * best candidate campaigns first, and each further candidate a little later.
 */
function hurried(node: RaftNode): boolean {
  const dead = node.hints.deadLeader;
  if (dead === undefined || (node.leader !== undefined && node.leader !== dead)) return false;
  if (node.role === 'candidate') {
    // No candidate has won: two peers ranked themselves first because their hints of each other were stale. Ranking by
    // name alone cannot be stale.
    const turn = node.hints.turn(node.id, node.membership);
    return node.electionElapsed >= (turn * 2 + 3) * node.heartbeatTicks;
  }
  const rank = node.hints.rank(node.id, node.log.last, node.membership);
  // The best candidate campaigns at once. Later attempts leave time for the votes to return before the next best
  // candidate starts.
  const wait = node.role === 'follower' && node.leader === dead ? rank * 2 : rank * 2 + 1;
  return node.electionElapsed >= wait * node.heartbeatTicks;
}

export function leaderConfirmedDead(node: RaftNode, leader: NodeId): void {
  if (node.role === 'leader' || (node.leader !== undefined && node.leader !== leader)) return;
  // A repeated hint only extends the time for which the leader counts as dead. The delays of lower-ranked peers start
  // with the first hint.
  if (node.leader === leader && node.hints.deadLeader !== leader) node.electionElapsed = 0;
  node.hints.confirmDead(leader, node.electionTicks * 2);
  if (node.promotable && hurried(node)) campaign(node, 'pre');
}

/**
 * Requests votes. `pre`: checks whether this member would win, without changing state. `real`: starts an election.
 * `transfer`: starts the election that the leader requested. Vote requests are sent only after the term, the own vote
 * and the entries they refer to are on disk.
 */
export function campaign(node: RaftNode, kind: 'pre' | 'real' | 'transfer'): void {
  if (node.role === 'leader' || !node.promotable) return;
  const leaderDead = node.hints.deadLeader !== undefined;
  const { last: lastIndex, lastTerm } = node.log;
  const others = node.membership.ids().filter((id) => id !== node.id && node.membership.isVoter(id));
  if (kind === 'pre') {
    node.becomePreCandidate();
    for (const to of others) node.send({ type: 'preVote', to, term: node.term + 1, lastIndex, lastTerm, leaderDead });
    poll(node, node.id, true);
    return;
  }
  node.becomeCandidate();
  const transfer = kind === 'transfer';
  for (const to of others) node.promise({ type: 'vote', to, lastIndex, lastTerm, transfer, leaderDead });
}

/** Records a vote and acts on the result of the election. */
export function poll(node: RaftNode, from: NodeId, granted: boolean): void {
  if (!node.votes.has(from)) node.votes.set(from, granted);
  const result = node.membership.voteResult(node.votes);
  if (result === 'lost') node.becomeFollower(node.term, undefined);
  else if (result === 'won') {
    if (node.role === 'preCandidate') campaign(node, 'real');
    else becomeLeader(node);
  }
}

/**
 * Whether to ignore a vote request because this member has a leader (thesis §4.2.3, §9.6), so that a partitioned or
 * removed member cannot disturb a working cluster. If gossip has confirmed the leader's death to this member, the
 * request is not ignored. If only the candidate reports the death, the request is ignored for as long as heartbeats
 * could still be in flight.
 */
export function defendsLeader(node: RaftNode, message: MessageOf<'preVote'> | MessageOf<'vote'>): boolean {
  if (message.type === 'vote' && message.transfer) return false;
  if (node.leader === undefined) return false;
  if (node.leader === node.id) return true;
  if (node.leader === node.hints.deadLeader) return false;
  const lease = message.leaderDead ? Math.min(node.heartbeatTicks * 2, node.electionTicks) : node.electionTicks;
  return node.electionElapsed < lease;
}

/** Responds to a vote request of this term or to a pre-vote of a later term. */
export function answerVote(node: RaftNode, message: MessageOf<'preVote'> | MessageOf<'vote'>): void {
  const free =
    node.vote === message.from ||
    (node.vote === undefined && node.leader === undefined) ||
    (message.type === 'preVote' && message.term > node.term);
  const granted = free && node.log.upToDate(message.lastIndex, message.lastTerm);
  const to = message.from;
  if (message.type === 'preVote') {
    // A granted pre-vote carries the term of the request. A refusal carries this member's own term, so that the
    // candidate catches up.
    if (granted) node.promise({ type: 'preVoteResp', to, term: message.term, granted });
    else node.promise({ type: 'preVoteResp', to, granted, ...node.known() });
    return;
  }
  if (!granted) {
    node.promise({ type: 'voteResp', to, granted, ...node.known() });
    return;
  }
  node.promise({ type: 'voteResp', to, granted });
  node.vote = message.from;
  node.electionElapsed = 0;
}

import { lead } from './leader.ts';
import type { RaftNode } from './node.ts';
import type { MessageOf, NodeId } from './types.ts';

/** Followers and candidates: time passes. */
export function tickElection(node: RaftNode): void {
  node.electionElapsed++;
  if (!node.promotable) return;
  if (hurried(node)) {
    campaign(node, 'pre');
    return;
  }
  if (node.electionElapsed < node.electionTimeout) return;
  if (node.hints.veto(node.leader)) {
    // Calm: only this member has lost sight of the leader. Votes for others are not held back by this.
    node.electionTimeout += node.electionTicks;
    return;
  }
  campaign(node, 'pre');
}

/**
 * Prompt and orderly: a confirmed-dead leader is replaced without waiting, by the best candidate first, the others a
 * little later each.
 */
function hurried(node: RaftNode): boolean {
  const dead = node.hints.deadLeader;
  if (dead === undefined || (node.leader !== undefined && node.leader !== dead)) return false;
  if (node.role === 'candidate') {
    // No candidate has won: two peers ranked themselves first on stale hints of each other. Ranking by name alone
    // cannot be stale.
    const turn = node.hints.turn(node.id, node.membership);
    return node.electionElapsed >= (turn * 2 + 3) * node.heartbeatTicks;
  }
  const rank = node.hints.rank(node.id, node.log.last, node.membership);
  // A first attempt by the best at once; later ones when the votes have had time to come back, and before the next best
  // begins.
  const wait = node.role === 'follower' && node.leader === dead ? rank * 2 : rank * 2 + 1;
  return node.electionElapsed >= wait * node.heartbeatTicks;
}

/** Gossip has confirmed the leader's death. */
export function leaderConfirmedDead(node: RaftNode, leader: NodeId): void {
  if (node.role === 'leader' || (node.leader !== undefined && node.leader !== leader)) return;
  // A repeated hint only extends the hold: the delay of the lower-ranked peers starts once.
  if (node.leader === leader && node.hints.deadLeader !== leader) node.electionElapsed = 0;
  node.hints.confirmDead(leader, node.electionTicks * 2);
  if (node.promotable && hurried(node)) campaign(node, 'pre');
}

/**
 * Asks for votes. `pre`: whether it would win, changing nothing; `real`; or `transfer`, when the leader has asked for
 * it. A vote is asked for only when term and own vote are on disk, together with the entries that the request boasts
 * of.
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

/** Counts a vote. */
export function poll(node: RaftNode, from: NodeId, granted: boolean): void {
  if (!node.votes.has(from)) node.votes.set(from, granted);
  const result = node.membership.voteResult(node.votes);
  if (result === 'lost') node.becomeFollower(node.term, undefined);
  else if (result === 'won') {
    if (node.role === 'preCandidate') campaign(node, 'real');
    else lead(node);
  }
}

/**
 * Whether a request for votes is to be ignored because this member has a leader (thesis §4.2.3, §9.6): a member that
 * was cut off or removed cannot disturb a working cluster. When gossip has confirmed the leader's death to this member
 * the leader is not defended at all; when only the candidate says so, it is defended for as long as heartbeats would
 * still be on their way.
 */
export function defendsLeader(node: RaftNode, message: MessageOf<'preVote'> | MessageOf<'vote'>): boolean {
  if (message.type === 'vote' && message.transfer) return false;
  if (node.leader === undefined) return false;
  if (node.leader === node.id) return true;
  if (node.leader === node.hints.deadLeader) return false;
  const lease = message.leaderDead ? Math.min(node.heartbeatTicks * 2, node.electionTicks) : node.electionTicks;
  return node.electionElapsed < lease;
}

/** A request for votes of this term, or a question about a later one. */
export function answerVote(node: RaftNode, message: MessageOf<'preVote'> | MessageOf<'vote'>): void {
  const free =
    node.vote === message.from ||
    (node.vote === undefined && node.leader === undefined) ||
    (message.type === 'preVote' && message.term > node.term);
  const granted = free && node.log.upToDate(message.lastIndex, message.lastTerm);
  const to = message.from;
  if (message.type === 'preVote') {
    // The answer to a question about a later term carries that term; a refusal carries this member's own, so that the
    // asker catches up.
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

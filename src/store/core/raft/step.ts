import { checkMessage } from './check-message.ts';
import { answerVote, campaign, defendsLeader, poll } from './election.ts';
import { onAppend, onHeartbeat, onLeaderMessage, onSnapshot } from './follower.ts';
import * as leader from './leader.ts';
import type { RaftNode } from './node.ts';
import { appendProposals, refusal } from './proposals.ts';
import type { Message, TermedMessage } from './types.ts';

/** Handles a message from a peer: its term first (paper §5.1), then its content. Throws if it is malformed. */
export function step(node: RaftNode, message: Message): void {
  checkMessage(message, node.id, node.term);
  if (!('term' in message)) {
    stepForwarded(node, message);
    return;
  }
  if (message.term > node.term) {
    const isVoteRequest = message.type === 'preVote' || message.type === 'vote';
    if (isVoteRequest && defendsLeader(node, message)) return;
    const hypothetical = message.type === 'preVote' || (message.type === 'preVoteResp' && message.granted);
    if (!hypothetical) node.becomeFollower(message.term, fromLeader(message) ? message.from : undefined);
  } else if (message.term < node.term) {
    stepStale(node, message);
    return;
  }
  stepCurrent(node, message);
}

/**
 * Sends the current term to a peer at a lower term, so that a replaced leader steps down and an isolated candidate
 * catches up.
 */
function stepStale(node: RaftNode, message: TermedMessage): void {
  const to = message.from;
  if (fromLeader(message))
    node.promise({ type: 'appendResp', to, index: 0, rejected: true, hintIndex: 0, hintTerm: 0 });
  else if (message.type === 'preVote') node.promise({ type: 'preVoteResp', to, granted: false, ...node.known() });
}

function stepCurrent(node: RaftNode, message: TermedMessage): void {
  if (message.type === 'preVoteResp' || message.type === 'voteResp') node.updateCommit(message);
  switch (message.type) {
    case 'preVote':
    case 'vote':
      answerVote(node, message);
      return;
    case 'preVoteResp':
      if (node.role === 'preCandidate' && message.term === node.term + (message.granted ? 1 : 0))
        poll(node, message.from, message.granted);
      return;
    case 'voteResp':
      if (node.role === 'candidate') poll(node, message.from, message.granted);
      return;
    case 'append':
      onLeaderMessage(node, message.from);
      onAppend(node, message);
      return;
    case 'heartbeat':
      onLeaderMessage(node, message.from);
      onHeartbeat(node, message);
      return;
    case 'snapshot':
      onLeaderMessage(node, message.from);
      onSnapshot(node, message);
      return;
    case 'appendResp':
      if (node.role === 'leader') leader.onAppendResp(node, message);
      return;
    case 'heartbeatResp':
      if (node.role === 'leader') leader.onHeartbeatResp(node, message);
      return;
    case 'timeoutNow':
      if (node.role === 'follower' && node.leader === message.from) campaign(node, 'transfer');
      return;
  }
}

/** Handles a request to the leader. Other roles do not respond: the sender has its own timeout. */
function stepForwarded(node: RaftNode, message: Exclude<Message, TermedMessage>): void {
  if (message.type === 'readIndexResp') {
    if (node.reads.answered(message.context)) node.readStates.push({ context: message.context, index: message.index });
    return;
  }
  if (node.role !== 'leader') return;
  if (message.type === 'propose') {
    if (refusal(node, message.data) === undefined) appendProposals(node, message.data);
  } else if (message.type === 'transfer') {
    if (node.membership.isVoter(message.target)) leader.transferLeadership(node, message.target);
  } else if (node.reads.size < node.config.maxPendingReads) leader.registerRead(node, message.context, message.from);
}

function fromLeader(message: TermedMessage): boolean {
  return message.type === 'append' || message.type === 'heartbeat' || message.type === 'snapshot';
}

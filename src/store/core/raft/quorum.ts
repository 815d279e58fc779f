import type { NodeId } from './types.ts';

export type VoteResult = 'won' | 'lost' | 'pending';

/**
 * Highest number that more than half of `voters` have reached. Infinite for an empty set, which imposes no condition.
 */
function majorityReached(voters: ReadonlySet<NodeId>, reached: (id: NodeId) => number): number {
  if (voters.size === 0) return Number.POSITIVE_INFINITY;
  const sorted = Array.from(voters, reached).sort((a, b) => b - a);
  return sorted[voters.size >> 1] ?? 0;
}

function majorityVote(voters: ReadonlySet<NodeId>, votes: ReadonlyMap<NodeId, boolean>): VoteResult {
  const needed = (voters.size >> 1) + 1;
  if (voters.size === 0) return 'won';
  let granted = 0;
  let missing = 0;
  for (const id of voters) {
    const vote = votes.get(id);
    if (vote === undefined) missing++;
    else if (vote) granted++;
  }
  if (granted >= needed) return 'won';
  return granted + missing >= needed ? 'pending' : 'lost';
}

/** Highest number that a majority of each set has reached (thesis §4.3). */
export function jointReached(
  incoming: ReadonlySet<NodeId>,
  outgoing: ReadonlySet<NodeId>,
  reached: (id: NodeId) => number,
): number {
  return Math.min(majorityReached(incoming, reached), majorityReached(outgoing, reached));
}

/** Result of an election: won when both majorities agree, lost when either can no longer agree. */
export function jointVote(
  incoming: ReadonlySet<NodeId>,
  outgoing: ReadonlySet<NodeId>,
  votes: ReadonlyMap<NodeId, boolean>,
): VoteResult {
  const a = majorityVote(incoming, votes);
  const b = majorityVote(outgoing, votes);
  if (a === b) return a;
  return a === 'lost' || b === 'lost' ? 'lost' : 'pending';
}

/** Decides whether the store keeps its quorum if a member is removed. */
export interface StoreMember {
  readonly name: string;
  /** Whether the member votes. Learners do not. */
  readonly voter: boolean;
  readonly healthy: boolean;
}

/** Reason why the member must not be removed. Undefined if it can be removed, does not vote, or is not a member. */
export function quorumRefusal(members: readonly StoreMember[], name: string): string | undefined {
  const own = members.find((each) => each.name === name);
  if (own === undefined || !own.voter) return undefined;
  const voters = members.filter(({ voter }) => voter);
  const others = voters.filter((each) => each !== own);
  if (others.length === 0) return `${name} has the only member of the store, and with it all data`;
  const needed = Math.floor(others.length / 2) + 1;
  const healthy = others.filter((each) => each.healthy).length;
  if (healthy < needed)
    return `the store would lose its quorum: ${healthy} of the ${others.length} other members are healthy, ${needed} are needed`;
  // A quorum of the current members, including the one to remove, must agree on the removal.
  const quorum = Math.floor(voters.length / 2) + 1;
  const alive = healthy + (own.healthy ? 1 : 0);
  return alive < quorum ? `the store has no quorum: ${alive} of ${voters.length} members are healthy` : undefined;
}

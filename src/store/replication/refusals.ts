import { CodedError } from '../../base/errors.ts';

/**
 * Rejection of a request that only the leader can serve. The router forwards a follower's requests before they are
 * evaluated, so this is rare: leadership was lost in the meantime, or no leader is known.
 */
export const notLeader = (): CodedError => new CodedError('not-leader', 'this member is not the leader');

export const tooMany = (): CodedError => new CodedError('too-many-requests', 'too many requests wait to be committed');

export const leaderFailed = (): CodedError =>
  new CodedError('leader-failed', 'leadership was lost before the outcome was known');

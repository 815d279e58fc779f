import { CodedError } from '../../base/errors.ts';

/**
 * Shared error object, because every write through a follower throws it and capturing a stack costs as much as
 * forwarding.
 */
export const NOT_LEADER = new CodedError('not-leader', 'this member does not lead');

export const tooMany = (): CodedError => new CodedError('too-many-requests', 'too many requests wait to be committed');

export const leaderFailed = (): CodedError =>
  new CodedError('leader-failed', 'leadership was lost before the outcome was known');

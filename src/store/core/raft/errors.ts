import { CodedError } from '../../../base/errors.ts';

/**
 * Operating errors of the consensus machine.
 *
 * - `NoLeader`, `NotLeader`: retry later, or send the request to the leader in `status().leader`.
 * - `Transferring`: leadership is being transferred to another member; retry shortly.
 * - `Overloaded`: the limit of uncommitted bytes or pending reads is reached; back off.
 * - `Removed`: this member is not in the configuration.
 * - `BadConfChange`: the change is not valid for the current configuration.
 * - `ConfChangePending`: an earlier change has not been applied yet.
 * - `BadTarget`: leadership cannot be transferred to that member.
 * - `BadMessage`: a peer sent a message that no correct member sends. No state has changed.
 * - `Diverged`: a peer contradicts an entry that is committed here: it belongs to another cluster, or a log is damaged.
 * - `LogLost`: the leader has proof that this member acknowledged entries that it no longer has. The member must not
 *   continue with this ID.
 */
export type RaftErrorCode =
  | 'NoLeader'
  | 'NotLeader'
  | 'Transferring'
  | 'Overloaded'
  | 'Removed'
  | 'BadConfChange'
  | 'ConfChangePending'
  | 'BadTarget'
  | 'BadMessage'
  | 'Diverged'
  | 'LogLost';

export class RaftError extends CodedError {
  declare readonly code: RaftErrorCode;
  constructor(code: RaftErrorCode, message: string) {
    super(code, message);
    this.name = 'RaftError';
  }
}

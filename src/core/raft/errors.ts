import { CodedError } from '../../base/errors.ts';

/**
 * What can go wrong without anybody having made a programming error.
 *
 * - `NoLeader`, `NotLeader`: ask again later, or ask the leader that `status().leader` names.
 * - `Transferring`: leadership is on its way to another member; ask again shortly.
 * - `Overloaded`: a bound on uncommitted bytes or pending reads is reached; back off.
 * - `Removed`: this member is not in the configuration.
 * - `BadConfChange`, `ConfChangePending`: the change makes no sense now, or another one has not been applied yet.
 * - `BadTarget`: leadership cannot go to that member.
 * - `BadMessage`: a peer sent something that no correct member sends. Nothing has changed.
 * - `Diverged`: a peer contradicts what this member knows to be committed: another cluster's member, or a damaged log.
 * - `LogLost`: the leader knows of entries that this member acknowledged and no longer has. It must not go on under
 *   this id.
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

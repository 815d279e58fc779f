/** Converts rows to log entries. Both functions throw CodedError 'corrupt' if the checksum does not match. */
import { CodedError } from '../../base/errors.ts';
import { EntryKind, type StoredEntry } from './port.ts';
import { checksum } from './schema.ts';
import type { EntryRow, RevisionRow } from './statements.ts';

export function fromRevision(row: RevisionRow): StoredEntry {
  const { revision, idx, term, crc, events, lease } = row;
  if (checksum(events, idx, term) !== crc >>> 0) {
    throw new CodedError('corrupt', `revision ${revision} is damaged on disk`);
  }
  const kind = lease === null ? EntryKind.revision : EntryKind.revoke;
  return { index: idx, term, kind, revision, lease: lease === null ? 0n : BigInt(lease), body: events };
}

export function fromEntry({ idx, term, kind, crc, body }: EntryRow): StoredEntry {
  if (checksum(body, idx, term) !== crc >>> 0)
    throw new CodedError('corrupt', `entry ${idx} of the log is damaged on disk`);
  return { index: idx, term, kind, revision: 0, lease: 0n, body };
}

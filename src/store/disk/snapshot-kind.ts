/** Determines the kind of a file before SQLite opens it. */
import { closeSync, openSync, readSync } from 'node:fs';
import { CodedError, messageOf } from '../../base/errors.ts';

const SQLITE_MAGIC = 'SQLite format 3\0';
/** Position of the magic number in etcd's database files. Source: bbolt db.go. */
const BOLT_MAGIC_AT = 16;
const BOLT_MAGIC = 0xed0c_daed;
/** Position of the journal mode in a database file. Source: SQLite's file format. */
const JOURNAL_AT = 18;
const WRITE_AHEAD = 2;
/** Position of the application id, which identifies a store's own file. Source: SQLite's file format. */
const APPLICATION_AT = 68;
export const OWN_FILE = 0x6865_6772;

/**
 * Throws CodedError 'unreadable' or 'unsupported' if the file is not a snapshot. With `live`, a store's own file is
 * accepted too.
 */
export function checkKind(path: string, live = false): void {
  const head = Buffer.alloc(100);
  try {
    const file = openSync(path, 'r');
    try {
      readSync(file, head, 0, head.length, 0);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw new CodedError('unreadable', `cannot read ${path}: ${messageOf(error)}`, { cause: error });
  }
  if (head.readUInt32LE(BOLT_MAGIC_AT) === BOLT_MAGIC) {
    throw new CodedError(
      'unsupported',
      `${path} is a snapshot of etcd, whose file format is not supported: restore it with etcdctl, start etcd with it, and run hyperedge snapshot restore --from-etcd --endpoints …`,
    );
  }
  if (head.toString('latin1', 0, SQLITE_MAGIC.length) !== SQLITE_MAGIC) {
    throw new CodedError('unsupported', `${path} is not a snapshot of this store`);
  }
  // Older store files used a write-ahead log, which snapshots never do.
  if (!live && (head[JOURNAL_AT] === WRITE_AHEAD || head.readUInt32BE(APPLICATION_AT) === OWN_FILE)) {
    throw new CodedError(
      'unsupported',
      `${path} is a copy of a store's data file, not a snapshot; it can only be restored, with --skip-hash-check`,
    );
  }
}

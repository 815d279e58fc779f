/** Encoding of watch events. */
import { encodeDeleteEvent, withPrevious } from '../core/messages/event.ts';
import type { Change } from '../core/mvcc/machine.ts';
import type { Version } from '../core/mvcc/version.ts';
import type { Watch } from './watch.ts';

/**
 * Encoded events of `changes`; undefined if a value is not in memory. Watches with the same changes share the encoding.
 */
export function fieldsInMemory(watch: Watch, changes: readonly Change[]): readonly Buffer[] | undefined {
  if (!watch.prevKv) {
    let fields = fieldsOf.get(changes);
    if (fields === undefined) {
      fields = changes.map((change) => change.field);
      fieldsOf.set(changes, fields);
    }
    return fields;
  }
  const fields: Buffer[] = [];
  for (const change of changes) {
    if (change.previous === undefined) fields.push(change.field);
    else {
      let field = withPreviousCache.get(change);
      if (field === undefined) {
        if (change.previous.kv === undefined) return undefined;
        field = withPrevious(change.field, change.previous.kv);
        withPreviousCache.set(change, field);
      }
      fields.push(field);
    }
  }
  return fields;
}

/** Number of `changes` that form whole revisions of about `bytes`, at least one revision. */
export function wholeRevisions(changes: ReadonlyArray<Pick<Change, 'version'>>, bytes: number): number {
  let size = 0;
  for (let i = 0; i < changes.length; i += 1) {
    const { version } = changes[i] as Change;
    if (size > bytes && version.revision !== changes[i - 1]?.version.revision) return i;
    size += version.size;
  }
  return changes.length;
}

/** Watches that receive the same changes share the list of encoded events. */
const fieldsOf = new WeakMap<readonly Change[], readonly Buffer[]>();
const withPreviousCache = new WeakMap<Change, Buffer>();

export function deleteField(version: Version): Buffer {
  return encodeDeleteEvent(version.key, version.revision).field;
}

/** Plans a change of the files of a host: the writes of one transaction, and the new state. Performs no I/O. */
import { differenceOf } from './difference.ts';
import {
  type Batch,
  type Content,
  type FileFacts,
  ORIGINALS,
  type Original,
  type Owner,
  type PathFacts,
  PRIVATE,
  type Recorded,
  type Replacement,
  STATE,
  type State,
} from './port.ts';

export interface FilePlan {
  readonly next: State;
  /** Writes of the transaction, including the file with the new state. */
  readonly batch: Batch;
}

/** Plans the transaction. `note` is stored in the new state. */
export function planFiles(state: State, { tree, left, hasState }: FileFacts, note: unknown): FilePlan {
  const entries: Record<string, Recorded> = {};
  const originals: Record<string, Original> = {};
  const saved: Replacement[] = [];
  // The stored name of an original is never reused, so that a power failure cannot assign it to the wrong path.
  let serial = lastSerial(state);
  for (const { path, record, present, isShared, unsaved } of tree) {
    if (isShared) continue;
    entries[path] = record;
    const kept = Object.hasOwn(state.originals, path) ? state.originals[path] : undefined;
    if (kept !== undefined) {
      originals[path] = kept;
      continue;
    }
    serial += 1;
    const stored = String(serial);
    if (present.kind === 'link' || present.kind === 'absent') originals[path] = present;
    else if (present.kind === 'file' && unsaved !== undefined) {
      const { mode, uid, gid } = present;
      originals[path] = { kind: 'file', stored, mode, uid, gid };
      saved.push({
        path: `${ORIGINALS}/${stored}`,
        content: { kind: 'file', bytes: unsaved, owner: PRIVATE },
        present: false,
      });
    }
  }
  const made = madeDirectories([...tree, ...left]);
  const needed = (directory: string): boolean => tree.some(({ path }) => path.startsWith(`${directory}/`));
  const directories = [...state.directories, ...[...made.keys()].filter((path) => !state.directories.includes(path))];
  const next: State = { version: 1, note, entries, originals, directories: directories.filter(needed) };
  const own: Content = { kind: 'file', bytes: jsonBytes(next), owner: PRIVATE };
  return {
    next,
    batch: {
      replacements: [
        ...saved,
        ...[...tree, ...left].filter(isDifferent).map(replacementOf),
        { path: STATE, content: own, present: hasState },
      ],
      directories: [...made].map(([path, owner]) => ({ path, owner })),
      leftDirectories: directories.filter((path) => !needed(path)).toReversed(),
      leftFiles: Object.entries(state.originals).flatMap(([path, original]) =>
        original.kind === 'file' && !Object.hasOwn(originals, path) ? [`${ORIGINALS}/${original.stored}`] : [],
      ),
    },
  };
}

const isDifferent = ({ path, record, present }: PathFacts): boolean =>
  differenceOf(path, record, present) !== undefined;

const replacementOf = ({ path, content, present }: PathFacts): Replacement => ({
  path,
  content,
  present: present.kind !== 'absent',
});

/**
 * Directories that must be created, outermost first, and their owners. The first path that needs a directory determines
 * its owner.
 */
function madeDirectories(paths: readonly PathFacts[]): ReadonlyMap<string, Owner> {
  const made = new Map<string, Owner>();
  for (const { missing, directoryOwner } of paths)
    for (const directory of missing) if (!made.has(directory)) made.set(directory, directoryOwner);
  return made;
}

const lastSerial = ({ originals }: State): number =>
  Object.values(originals).reduce(
    (most, original) => (original.kind === 'file' ? Math.max(most, Number(original.stored)) : most),
    0,
  );

export const jsonBytes = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

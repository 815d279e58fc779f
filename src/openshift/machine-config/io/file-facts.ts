/** Reads the facts about files that the plan of a change requires. */
import { dirname } from 'node:path';
import { CodedError } from '../../../base/errors.ts';
import { sha256Hex } from '../../../wire/digest.ts';
import {
  type Content,
  type FileFacts,
  type Observed,
  ORIGINALS,
  type Original,
  type Owner,
  type PathFacts,
  type Recorded,
  type State,
  type TreePath,
} from '../core/host-files/port.ts';
import type { Entry, Tree } from '../core/ignition/port.ts';
import type { Accounts } from './accounts.ts';
import type { Disk } from './disk.ts';
import { MAX_KEPT_BYTES, observePath } from './observe.ts';

const DIRECTORY: Owner = { mode: 0o755, uid: 0, gid: 0 };

/**
 * Inspects all paths of the new and of the previous tree. Throws CodedErrors that name the file: 'bad-owner',
 * 'symlinked-parent', 'not-a-file'.
 */
export async function readFileFacts(
  disk: Disk,
  state: State,
  tree: Tree,
  accounts: Accounts,
  hasState: boolean,
): Promise<FileFacts> {
  const paths: TreePath[] = [];
  for (const [path, entry] of tree) paths.push(await treePath(disk, state, path, entry, accounts));
  const left: PathFacts[] = [];
  for (const [path, original] of Object.entries(state.originals)) {
    const facts = tree.has(path) ? undefined : await leftPath(disk, path, original);
    if (facts !== undefined) left.push(facts);
  }
  return { tree: paths, left, hasState };
}

async function treePath(disk: Disk, state: State, path: string, entry: Entry, accounts: Accounts): Promise<TreePath> {
  const content = contentOf(entry, accounts, path);
  const missing = await missingParents(disk, path);
  const present = await observePath(disk, path);
  if (present.kind === 'directory' || present.kind === 'other')
    throw new CodedError('not-a-file', `${path}: is a ${present.kind === 'directory' ? 'directory' : 'special file'}`);
  const isShared = entry.kind === 'file' && entry.shared === true;
  const isSaved = isShared || Object.hasOwn(state.originals, path) || present.kind !== 'file';
  return {
    path,
    content,
    record: recordOf(content),
    present,
    missing,
    isShared,
    directoryOwner:
      entry.kind === 'file' && entry.directoryMode !== undefined
        ? { mode: entry.directoryMode, uid: accounts.uidOf(entry.user), gid: accounts.gidOf(entry.group) }
        : DIRECTORY,
    ...(isSaved ? {} : { unsaved: await disk.read(path, MAX_KEPT_BYTES) }),
  };
}

/**
 * Facts about a path that the tree no longer contains. Undefined if the path is now a directory or special file, which
 * is left unchanged.
 */
async function leftPath(disk: Disk, path: string, original: Original): Promise<PathFacts | undefined> {
  const present = await observePath(disk, path).catch((): Observed => ({ kind: 'absent' }));
  if (present.kind === 'directory' || present.kind === 'other') return undefined;
  const content = await restored(disk, original);
  // The parent directory may have been deleted together with the file.
  const missing = content.kind === 'absent' ? [] : await missingParents(disk, path);
  return { path, content, record: recordOf(content), present, missing, directoryOwner: DIRECTORY };
}

function contentOf(entry: Entry, accounts: Accounts, path: string): Content {
  if (entry.kind !== 'file') return entry;
  try {
    const owner = { mode: entry.mode, uid: accounts.uidOf(entry.user), gid: accounts.gidOf(entry.group) };
    return { kind: 'file', bytes: entry.bytes, owner };
  } catch (error) {
    if (error instanceof CodedError) throw new CodedError(error.code, `${path}: ${error.message}`);
    throw error;
  }
}

const recordOf = (content: Content): Recorded =>
  content.kind === 'file'
    ? { kind: 'file', sha256: sha256Hex(content.bytes), size: content.bytes.length, ...content.owner }
    : content;

/** Parent directories of a path that do not exist, outermost first. Throws CodedError 'symlinked-parent'. */
async function missingParents(disk: Disk, path: string): Promise<readonly string[]> {
  const missing: string[] = [];
  for (let parent = dirname(path); parent !== '/'; parent = dirname(parent)) {
    const stat = await disk.stat(parent);
    if (stat?.kind === 'directory') break;
    if (stat !== undefined) {
      const fix = 'symbolic links are not followed; name the directory that it leads to';
      throw new CodedError('symlinked-parent', `${path}: ${parent} is not a directory; ${fix}`);
    }
    missing.push(parent);
  }
  return missing.toReversed();
}

async function restored(disk: Disk, original: Original): Promise<Content> {
  if (original.kind !== 'file') return original;
  const { stored, mode, uid, gid } = original;
  return { kind: 'file', bytes: await disk.read(`${ORIGINALS}/${stored}`, MAX_KEPT_BYTES), owner: { mode, uid, gid } };
}

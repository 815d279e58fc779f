/**
 * Atomic changes of several files that survive a power failure. Intuition: before the first file changes, all data to
 * complete and to undo the changes is on disk. Then the phase in the journal is set to `commit`. After that, only
 * renames and removals follow, which can be repeated. After a power failure, a replay undoes the transaction if its
 * phase is before `commit`, and completes it otherwise. If an error occurs after `commit`, the phase is set to `undo`,
 * and a replay completes the undo.
 */

import { dirname } from 'node:path';
import { type Decoded, decodeJson, list, object, oneOf, optional, text as string } from '../../../base/decode.ts';
import { CodedError, ignore, messageOf } from '../../../base/errors.ts';
import { type Batch, PRIVATE } from '../core/host-files/port.ts';
import { codeOf, type Disk } from './disk.ts';

const JOURNAL = 'journal.json';
const AT_ONCE = 16;
const MAX_JOURNAL_BYTES = 64 * 1024 * 1024;

const CHANGE = object({
  path: string,
  /** File that is renamed to `path`. If absent, `path` is removed. */
  temporary: optional(string),
  /** Second name of the entry that `path` had before; absent if `path` did not exist. */
  old: optional(string),
});
type Change = Decoded<typeof CHANGE>;

const JOURNAL_SCHEMA = object({
  phase: oneOf('stage', 'commit', 'undo'),
  changes: list(CHANGE),
  madeDirectories: list(string),
  leftDirectories: list(string),
  leftFiles: list(string),
});
type Journal = Decoded<typeof JOURNAL_SCHEMA>;

export type Replayed = 'nothing' | 'finished' | 'undone';

export interface Transactions {
  /**
   * Completes or undoes a transaction that a power failure or an error has interrupted. Must be called before `run`,
   * which overwrites the journal. Throws if the transaction could be neither completed nor undone.
   */
  replay(): Promise<Replayed>;
  /**
   * Executes a transaction. Throws CodedErrors that name the file; the changes are then undone. If the undo fails, the
   * next replay repeats it.
   */
  run(batch: Batch): Promise<void>;
  /** Replaces a private file in the directory of the journal. */
  replace(path: string, bytes: Uint8Array): Promise<void>;
}

/** Creates transactions whose journal is in `directory`, which must exist and be private. */
export const createTransactions = (disk: Disk, directory: string): Transactions =>
  new JournaledTransactions(disk, directory);

class JournaledTransactions implements Transactions {
  readonly #disk: Disk;
  readonly #directory: string;
  readonly #journal: string;

  constructor(disk: Disk, directory: string) {
    this.#disk = disk;
    this.#directory = directory;
    this.#journal = `${directory}/${JOURNAL}`;
  }

  async replay(): Promise<Replayed> {
    const journal = await this.#readJournal();
    if (journal === undefined) return 'nothing';
    if (journal.phase !== 'commit') {
      await this.#undo(journal);
      return 'undone';
    }
    // The old entries are removed only after all changes are on disk. If one is missing, an undo would be incomplete.
    const isCommitted = await this.#lacksOld(journal);
    if (!isCommitted && (await this.#commitOrUndo(journal)) !== undefined) return 'undone';
    await this.#clean(journal);
    return 'finished';
  }

  async run(batch: Batch): Promise<void> {
    const journal: Journal = {
      phase: 'stage',
      changes: batch.replacements.map(({ path, content, present }, index) => ({
        path,
        ...(content.kind === 'absent' ? {} : { temporary: beside(path, 'new', index) }),
        ...(present ? { old: beside(path, 'old', index) } : {}),
      })),
      madeDirectories: batch.directories.map(({ path }) => path),
      leftDirectories: batch.leftDirectories,
      leftFiles: batch.leftFiles,
    };
    try {
      await explained(this.#journal, () => this.#writeJournal(journal));
      await this.#stage(batch, journal);
      await explained(this.#journal, () => this.#writeJournal({ ...journal, phase: 'commit' }));
    } catch (error) {
      await this.#undo(journal);
      throw error;
    }
    const failure = await this.#commitOrUndo({ ...journal, phase: 'commit' });
    if (failure !== undefined) throw failure.error;
    await this.#clean(journal).catch(ignore('the changes are on disk, and the next replay removes the old entries'));
  }

  async #stage({ replacements, directories }: Batch, journal: Journal): Promise<void> {
    const disk = this.#disk;
    for (const { path, owner } of directories) {
      await explained(path, () => disk.makeDirectory(path, owner));
      await disk.sync(dirname(path));
    }
    const staged = replacements.map((replacement, index) => [replacement, journal.changes[index]] as const);
    await together(staged, ([{ path, content, present }, change]) =>
      explained(path, async () => {
        if (change?.temporary !== undefined) {
          await disk.remove(change.temporary);
          if (content.kind === 'file') await disk.write(change.temporary, content.bytes, content.owner);
          if (content.kind === 'link') await disk.symlink(change.temporary, content.target);
        }
        if (change?.old !== undefined && present) {
          await disk.remove(change.old);
          await keepOld(disk, path, change.old);
        }
      }),
    );
    await this.#syncParents(journal.changes);
  }

  /** Returns the error if the changes failed and were undone. Throws if the undo failed as well. */
  async #commitOrUndo(journal: Journal): Promise<{ readonly error: unknown } | undefined> {
    try {
      await this.#commit(journal);
      return undefined;
    } catch (error) {
      const undone: Journal = { ...journal, phase: 'undo' };
      await this.#writeJournal(undone);
      await this.#undo(undone);
      return { error };
    }
  }

  async #lacksOld({ changes }: Journal): Promise<boolean> {
    for (const { old } of changes) if (old !== undefined && (await this.#disk.stat(old)) === undefined) return true;
    return false;
  }

  /** Removes what is no longer needed after a commit, and ends the transaction. */
  async #clean({ changes, leftFiles, leftDirectories }: Journal): Promise<void> {
    for (const { old } of changes) if (old !== undefined) await this.#disk.remove(old);
    for (const path of leftFiles) await this.#disk.remove(path);
    for (const path of leftDirectories) await this.#removeLeftDirectory(path);
    await this.#syncParents(changes);
    await this.#endJournal();
  }

  async #commit({ changes }: Journal): Promise<void> {
    const disk = this.#disk;
    for (const { path, temporary } of changes) {
      await explained(path, async () => {
        if (temporary === undefined) await disk.remove(path);
        else if ((await disk.stat(temporary)) !== undefined) await disk.rename(temporary, path);
      });
    }
    await this.#syncParents(changes);
  }

  async #undo({ phase, changes, madeDirectories }: Journal): Promise<void> {
    const disk = this.#disk;
    // In the phase `stage`, no file has changed yet, so only temporary files are removed.
    if (phase === 'undo') {
      for (const { path, old } of changes) {
        if (old === undefined) await disk.remove(path);
        else if ((await disk.stat(old)) !== undefined) await disk.rename(old, path);
      }
      await this.#syncParents(changes);
    }
    for (const { temporary, old } of changes)
      for (const name of [temporary, old]) if (name !== undefined) await this.#removeIfReachable(name);
    await this.#syncParents(changes);
    for (const path of madeDirectories.toReversed()) await this.#removeLeftDirectory(path);
    await this.#endJournal();
  }

  async #removeLeftDirectory(path: string): Promise<void> {
    try {
      if (await this.#disk.removeDirectory(path)) await this.#disk.sync(dirname(path));
    } catch (error) {
      // The path or one of its parents is no longer a directory, so there is nothing to remove.
      if (codeOf(error) !== 'symlinked-parent' && codeOf(error) !== 'ENOTDIR') throw error;
    }
  }

  /**
   * Removes a file. Succeeds if its parent directory does not exist, because the directory may not have been created
   * yet.
   */
  async #removeIfReachable(path: string): Promise<void> {
    await this.#disk.remove(path).catch((error: unknown) => {
      if (codeOf(error) !== 'symlinked-parent') throw error;
    });
  }

  async #syncParents(changes: readonly Change[]): Promise<void> {
    const parents = new Set(changes.map(({ path }) => dirname(path)));
    await together([...parents], (parent) =>
      this.#disk.sync(parent).catch((error: unknown) => {
        if (codeOf(error) !== 'ENOENT') throw error;
      }),
    );
  }

  async #readJournal(): Promise<Journal | undefined> {
    if ((await this.#disk.stat(this.#journal)) === undefined) return undefined;
    const text = new TextDecoder().decode(await this.#disk.read(this.#journal, MAX_JOURNAL_BYTES));
    try {
      return decodeJson(JOURNAL_SCHEMA, text, JOURNAL);
    } catch (error) {
      const fix = 'compare the files of the host with its configuration, then delete it';
      throw new CodedError('bad-journal', `${this.#journal}: is not JSON; ${fix}`, { cause: error });
    }
  }

  #writeJournal(journal: Journal): Promise<void> {
    return this.replace(this.#journal, new TextEncoder().encode(JSON.stringify(journal)));
  }

  async replace(path: string, bytes: Uint8Array): Promise<void> {
    const temporary = `${path}.new`;
    await this.#disk.remove(temporary);
    await this.#disk.write(temporary, bytes, PRIVATE);
    await this.#disk.rename(temporary, path);
    await this.#disk.sync(this.#directory);
  }

  async #endJournal(): Promise<void> {
    await this.#disk.remove(this.#journal);
    await this.#disk.sync(this.#directory);
  }
}

/** Path of a temporary file in the same directory, because a rename is atomic only within a file system. */
const beside = (path: string, what: string, index: number): string =>
  `${dirname(path) === '/' ? '' : dirname(path)}/.hyperedge-${what}-${index}`;

/**
 * Processes items concurrently in batches, so that their flushes share one commit of the file system. If an item fails,
 * the first error is thrown after all items of its batch have ended.
 */
async function together<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  for (let from = 0; from < items.length; from += AT_ONCE) {
    const outcomes = await Promise.allSettled(items.slice(from, from + AT_ONCE).map(act));
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  }
}

async function keepOld(disk: Disk, path: string, old: string): Promise<void> {
  const stat = await disk.stat(path);
  if (stat?.kind === 'link') await disk.symlink(old, stat.target);
  else await disk.keep(path, old);
}

const WORDS: Readonly<Record<string, string>> = {
  ENOSPC: 'no space left on device; free space; the change is retried',
  EDQUOT: 'disk quota exceeded',
  EROFS: 'read-only file system; remount it writable',
  EPERM: 'operation not permitted; the file may be immutable (lsattr)',
  EACCES: 'permission denied',
  EIO: 'input/output error; check the disk',
};

/** Replaces the path of the descriptor in error messages by the path of the file. */
async function explained<T>(path: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof CodedError) throw error;
    const code = codeOf(error);
    const words = code === undefined ? messageOf(error) : (WORDS[code] ?? code);
    throw new CodedError(code ?? 'unwritable', `${path}: ${words}`, { cause: error });
  }
}

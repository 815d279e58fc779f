/**
 * Types for the files of a host: the entries that configs have written, the original entries, and changes to the files.
 */

export interface Owner {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

export type Recorded =
  | {
      readonly kind: 'file';
      readonly sha256: string;
      readonly size: number;
      readonly mode: number;
      readonly uid: number;
      readonly gid: number;
    }
  | { readonly kind: 'link'; readonly target: string }
  | { readonly kind: 'absent' };

export type Observed = Recorded | { readonly kind: 'directory' } | { readonly kind: 'other' };

export const STATE_DIRECTORY = '/var/lib/origin/machine-config';
export const STATE = `${STATE_DIRECTORY}/state.json`;
export const ORIGINALS = `${STATE_DIRECTORY}/originals`;
export const PRIVATE: Owner = { mode: 0o600, uid: 0, gid: 0 };

/**
 * Entry that a path had before the first config. The content of a file is in the directory of originals, under
 * `stored`.
 */
export type Original =
  | ({ readonly kind: 'file'; readonly stored: string } & Owner)
  | { readonly kind: 'link'; readonly target: string }
  | { readonly kind: 'absent' };

export interface State {
  readonly version: 1;
  readonly note: unknown;
  readonly entries: Readonly<Record<string, Recorded>>;
  readonly originals: Readonly<Record<string, Original>>;
  /** Directories that were created for entries, outermost first. */
  readonly directories: readonly string[];
}

export const EMPTY: State = { version: 1, note: null, entries: {}, originals: {}, directories: [] };

/** Facts about a path of the tree, or about a path whose original will be restored. */
export interface PathFacts {
  readonly path: string;
  /** Content that the path must have, and its record in the state. */
  readonly content: Content;
  readonly record: Recorded;
  readonly present: Observed;
  /** Parent directories of the path that do not exist, outermost first, and the owner that they get. */
  readonly missing: readonly string[];
  readonly directoryOwner: Owner;
}

export interface TreePath extends PathFacts {
  /** Whether the file is edited in place together with other programs, so no original is saved. */
  readonly isShared: boolean;
  /** Contents of an existing file that must be saved as the original; unset if the original is already saved. */
  readonly unsaved?: Uint8Array;
}

export interface FileFacts {
  readonly tree: readonly TreePath[];
  /** Paths of the previous tree that the new tree no longer contains. */
  readonly left: readonly PathFacts[];
  readonly hasState: boolean;
}

export type Content =
  | { readonly kind: 'file'; readonly bytes: Uint8Array; readonly owner: Owner }
  | { readonly kind: 'link'; readonly target: string }
  | { readonly kind: 'absent' };

export interface Replacement {
  readonly path: string;
  readonly content: Content;
  /** Whether the path exists. If the transaction is undone, its present entry is restored. */
  readonly present: boolean;
}

export interface Batch {
  readonly replacements: readonly Replacement[];
  /** Directories to create before the changes, in this order. They are removed if the transaction is undone. */
  readonly directories: readonly { readonly path: string; readonly owner: Owner }[];
  /**
   * Directories to remove after the changes, in this order, because the new tree does not need them. A directory that
   * is not empty is kept.
   */
  readonly leftDirectories: readonly string[];
  /** Stored originals to remove after the changes, because the new state no longer contains them. */
  readonly leftFiles: readonly string[];
}

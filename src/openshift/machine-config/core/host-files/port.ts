/** Files of a host: what configs have written, what was there before, and changes of both. */

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

/** Original entry of a path before the first config; contents are in the directory of originals. */
export type Original =
  | ({ readonly kind: 'file'; readonly stored: string } & Owner)
  | { readonly kind: 'link'; readonly target: string }
  | { readonly kind: 'absent' };

export interface State {
  readonly version: 1;
  readonly note: unknown;
  readonly entries: Readonly<Record<string, Recorded>>;
  readonly originals: Readonly<Record<string, Original>>;
  /** Directories that were created for entries, parents first. */
  readonly directories: readonly string[];
}

export const EMPTY: State = { version: 1, note: null, entries: {}, originals: {}, directories: [] };

/** A path of the tree, or one whose original is restored. */
export interface PathFacts {
  readonly path: string;
  /** Wanted content, and its record. */
  readonly content: Content;
  readonly record: Recorded;
  readonly present: Observed;
  /** Missing directories above the path, parents first, and their owner. */
  readonly missing: readonly string[];
  readonly directoryOwner: Owner;
}

export interface TreePath extends PathFacts {
  /** The file is edited in place, so no original is saved. */
  readonly isShared: boolean;
  /** Contents of a present file that is not recorded as an original yet. */
  readonly unsaved?: Uint8Array;
}

export interface FileFacts {
  readonly tree: readonly TreePath[];
  /** Paths that are no longer in the tree. */
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
  /** The path exists, and its entry is restored if the transaction is undone. */
  readonly present: boolean;
}

export interface Batch {
  readonly replacements: readonly Replacement[];
  /**
   * Missing directories. They are created before the changes, in this order, and removed if the transaction is undone.
   */
  readonly directories: readonly { readonly path: string; readonly owner: Owner }[];
  /**
   * Directories that the new configuration no longer contains. They are removed after the changes if they are empty, in
   * this order.
   */
  readonly leftDirectories: readonly string[];
  /** Files that the new configuration no longer contains. They are removed after the changes. */
  readonly leftFiles: readonly string[];
}

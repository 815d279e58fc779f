/** Format of the packaged helper programs, shared by the build and the executable. */

/**
 * Placeholder for the directory of the helper programs, in their interpreter and library paths. The actual directory is
 * written over it and cannot be longer.
 */
export const HELPER_PREFIX: string = `/${'@'.repeat(199)}`;

export interface HelperManifest {
  /** Hash of all contents. The programs are unpacked to a directory with this name. */
  readonly hash: string;
  /** Files in the order of their contents. Paths start with `bin/` for executables, otherwise with `lib/`. */
  readonly files: readonly { readonly path: string; readonly size: number }[];
}

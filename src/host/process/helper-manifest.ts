/** Format of the packaged helper programs, shared by the build and the executable. */

/**
 * Placeholder for the directory of the helper programs in their interpreter and library paths. A longer directory does
 * not fit.
 */
export const HELPER_PREFIX: string = `/${'@'.repeat(199)}`;

export interface HelperManifest {
  /** Hash of all contents, which is the name of the directory they are unpacked to. */
  readonly hash: string;
  /** In the order of the contents. Paths start with `bin/` (executable) or `lib/`. */
  readonly files: readonly { readonly path: string; readonly size: number }[];
}

/** What build and executable agree on about the carried programs. */

/**
 * Stands for the directory of the carried programs in their interpreter and library paths. A longer directory does not
 * fit in.
 */
export const HELPER_PREFIX: string = `/${'@'.repeat(199)}`;

export interface HelperManifest {
  /** Of all contents: names the directory that they are unpacked to. */
  readonly hash: string;
  /** In the order of the contents. Paths start with `bin/` (executable) or `lib/`. */
  readonly files: readonly { readonly path: string; readonly size: number }[];
}

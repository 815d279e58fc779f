/** Operations on untrusted directory trees of any depth, with any names and links. */
export interface Trees {
  /**
   * Removes a file, or a directory with its content. A missing path is no error. Follows no links and stops at mount
   * points (EBUSY, EXDEV). The depth is not limited by PATH_MAX or by the number of open descriptors. Rejects with the
   * file system's error.
   */
  remove(path: string): Promise<void>;
  /**
   * Usage of each path on its own file system; files with several hard links count once. Missing paths are omitted.
   * Rejects with CodedError 'timeout' after `timeoutMs`, and 'usage' if measuring fails.
   */
  usage(paths: readonly string[], options: UsageOptions): Promise<ReadonlyMap<string, number>>;
}

export interface UsageOptions {
  readonly unit: 'bytes' | 'inodes';
  readonly timeoutMs: number;
}

/** Trees of files that tenants made: any depth, any names, links that lead elsewhere. */
export interface Trees {
  /**
   * Removes what is at `path`, a directory with everything below it or a file; nothing there is fine. Follows no link
   * and stops at mount points (EBUSY, EXDEV). Depth does not matter: neither PATH_MAX nor the number of open
   * descriptors bounds it. Rejects with the file system's error.
   */
  remove(path: string): Promise<void>;
  /**
   * What is at and below each path on its own file system, files with several names once; without paths that are not
   * there. Rejects with CodedError 'timeout' after `timeoutMs`, 'usage' when nothing can be measured.
   */
  usage(paths: readonly string[], options: UsageOptions): Promise<ReadonlyMap<string, number>>;
}

export interface UsageOptions {
  readonly unit: 'bytes' | 'inodes';
  readonly timeoutMs: number;
}

/** The deploy directory and what else the deployer needs from outside. Implemented by `src/io/manifest-directory`. */

export interface ManifestFile {
  /** Relative to the directory. */
  readonly name: string;
  /** Changes with the file. */
  readonly stamp: string;
  readonly sizeBytes: number;
}

export interface ManifestDirectory {
  /**
   * Files that end in .yaml, .yml or .json, below subdirectories too, and `.skip` files beside them. Undefined: the
   * directory does not exist, which says nothing about its files.
   */
  list(): Promise<readonly ManifestFile[] | undefined>;
  read(name: string): Promise<string>;
  /** Calls back after changes of the directory itself; callers also list now and then. */
  watch(listener: () => void): { close(): void };
  /** SHA-256 in URL-safe base 64 without padding. */
  hash(text: string): string;
}

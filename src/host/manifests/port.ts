/** Ports of the deployer to the deploy directory and a hash function. Implemented by `src/host/manifests/io`. */

export interface ManifestFile {
  /** Path relative to the directory. */
  readonly name: string;
  /** Text that changes whenever the file changes. */
  readonly stamp: string;
  readonly sizeBytes: number;
}

export interface ManifestDirectory {
  /**
   * Files in the directory and its subdirectories that end in .yaml, .yml or .json, and the `.skip` files beside them.
   * Undefined if the directory does not exist; then no file counts as deleted.
   */
  list(): Promise<readonly ManifestFile[] | undefined>;
  read(name: string): Promise<string>;
  /**
   * Calls the listener after changes in the directory, but not in its subdirectories. Callers must also list
   * periodically.
   */
  watch(listener: () => void): { close(): void };
  /** SHA-256 in URL-safe base64 without padding. */
  hash(text: string): string;
}

/** Ports of the deployer to the deploy directory and a hash function. Implemented by `src/host/manifests/io`. */

export interface ManifestFile {
  /** Path relative to the directory. */
  readonly name: string;
  /** Changes with the file. */
  readonly stamp: string;
  readonly sizeBytes: number;
}

export interface ManifestDirectory {
  /**
   * Files that end in .yaml, .yml or .json, including subdirectories, and `.skip` files beside them. Undefined when the
   * directory does not exist; the files then count as unknown, not as deleted.
   */
  list(): Promise<readonly ManifestFile[] | undefined>;
  read(name: string): Promise<string>;
  /** Calls the listener after changes of the directory itself. Callers also list periodically. */
  watch(listener: () => void): { close(): void };
  /** SHA-256 in URL-safe base64 without padding. */
  hash(text: string): string;
}

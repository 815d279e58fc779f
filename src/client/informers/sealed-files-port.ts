/** Encrypted files that only this host can read. Implemented by `src/host/process/sealed-files`. */
export interface SealedFiles {
  /**
   * Undefined if the file does not exist. Throws CodedError 'sealed-file' with the file and the problem: damaged,
   * written with another key, by another node or under another name, or too large.
   */
  read(name: string): Promise<Uint8Array | undefined>;
  /**
   * Replaces the file atomically and durably. Creates the key if there is none. Resolves with false, without writing to
   * the disk, if the content is unchanged.
   */
  write(name: string, content: Uint8Array): Promise<boolean>;
  /** Succeeds if the file does not exist. */
  remove(name: string): Promise<void>;
}

/** Encrypted files that only this host can read. Implemented by `src/host/process/sealed-files`. */
export interface SealedFiles {
  /**
   * Reads a file; undefined if it does not exist. Throws CodedError 'sealed-file' with the file and the problem: it is
   * damaged or too large, or it was written with another key, on another node or under another name.
   */
  read(name: string): Promise<Uint8Array | undefined>;
  /**
   * Replaces a file atomically and durably. Creates the key if it does not exist. If the content is unchanged, nothing
   * is written and the result is false.
   */
  write(name: string, content: Uint8Array): Promise<boolean>;
  /** Removes a file. Succeeds even if the file does not exist. */
  remove(name: string): Promise<void>;
}

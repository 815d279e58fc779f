/** Files that only this host can read again. Implemented by `src/io/sealed-files`. */
export interface SealedFiles {
  /**
   * Undefined: there is no such file. Throws CodedError 'sealed-file' naming the file and what is wrong: damaged,
   * written with another key, by another node or under another name, or too large.
   */
  read(name: string): Promise<Uint8Array | undefined>;
  /**
   * Replaces the file at once, durably; makes the key when there is none. Resolves with false, without touching the
   * disk, when the file has this content already.
   */
  write(name: string, content: Uint8Array): Promise<boolean>;
  /** A file that is not there is fine. */
  remove(name: string): Promise<void>;
}

/** Files that this API server serves to other hosts. Implemented by `src/host/apiserver`. */

export interface ServedFile {
  readonly size: number;
  readonly content: AsyncIterable<Uint8Array>;
}

export interface ReleaseSource {
  /**
   * Opens a file of an imported release. Undefined if there is none. `sha256` must be a valid digest in hexadecimal.
   */
  open(sha256: string): Promise<ServedFile | undefined>;
  /** Opens an operator catalog with this digest as one stream. */
  openCatalog(sha256: string): Promise<ServedFile | undefined>;
}

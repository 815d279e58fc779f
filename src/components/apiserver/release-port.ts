/** Files that this API server hands to other hosts. Implemented by `src/roles/api`. */

export interface ServedFile {
  readonly size: number;
  readonly content: AsyncIterable<Uint8Array>;
}

export interface ReleaseSource {
  /** A file of an imported release. Undefined: there is none. `sha256` has been checked to be a digest in hex. */
  open(sha256: string): Promise<ServedFile | undefined>;
  /** A catalog of operators with this digest, as one stream. */
  openCatalog(sha256: string): Promise<ServedFile | undefined>;
}

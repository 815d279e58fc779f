/** Files of releases that this API server hands to other hosts. Implemented by `src/roles/api`. */

export interface ReleaseSource {
  /** Undefined: there is no such file. `sha256` has been checked to be a digest in hex. */
  open(sha256: string): Promise<{ readonly size: number; readonly content: AsyncIterable<Uint8Array> } | undefined>;
}

/** Files of the web console in the executable. Written by `build/console.ts`. */
export interface ConsoleManifest {
  readonly files: readonly {
    /** Path below `/console/`. */
    readonly name: string;
    /** Media type. */
    readonly type: string;
    readonly etag: string;
    /** Offset of the gzip data in the concatenated files, in bytes. */
    readonly offset: number;
    readonly length: number;
  }[];
}

/** Files of the web console in the executable. Written by `build/console.ts`. */
export interface ConsoleManifest {
  readonly files: readonly {
    /** Path below `/console/`. */
    readonly name: string;
    /** Media type. */
    readonly type: string;
    readonly etag: string;
    /** Place of the gzip data in the concatenated files. */
    readonly offset: number;
    readonly length: number;
  }[];
}

/** Catalogs on the host that runs the controllers. Implemented by `src/io/catalogs`. */

export type CatalogPlace =
  /** Below the directory of catalogs of the host. */
  | { readonly kind: 'directory'; readonly path: string }
  /** In the image store of the host: its directory of catalogs. */
  | { readonly kind: 'image'; readonly image: string };

export interface CatalogFile {
  readonly name: string;
  readonly format: 'json' | 'yaml';
  readonly sizeBytes: number;
  chunks(): AsyncIterable<Uint8Array>;
  read(offset: number, length: number): Promise<Uint8Array>;
}

export interface OpenedCatalog {
  /** Where it is, for people. */
  readonly address: string;
  /** Changes with the content. */
  readonly stamp: string;
  readonly files: readonly CatalogFile[];
}

export interface CatalogDirectory {
  readonly name: string;
  /** Undefined: it is not there, or has no catalog. */
  readonly digest: string | undefined;
}

/** All methods throw a CodedError 'catalog' with one sentence. */
export interface CatalogFiles {
  open(place: CatalogPlace): Promise<OpenedCatalog>;
  /** The directory that holds a catalog, of which masters have copies; undefined: an image. */
  copy(place: CatalogPlace): Promise<CatalogDirectory | undefined>;
  /** The manifests of a bundle's image: texts in YAML or JSON. */
  bundle(image: string): Promise<readonly string[]>;
}

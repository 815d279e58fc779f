/** Port for catalogs on the host that runs the controllers. Implemented by `src/openshift/operators/olm/io`. */

export type CatalogPlace =
  /** Path below the directory in which this host keeps catalogs. */
  | { readonly kind: 'directory'; readonly path: string }
  /** Image in the host's image store. The catalog is a directory in the image. */
  | { readonly kind: 'image'; readonly image: string };

export interface CatalogFile {
  readonly name: string;
  readonly format: 'json' | 'yaml';
  readonly sizeBytes: number;
  chunks(): AsyncIterable<Uint8Array>;
  read(offset: number, length: number): Promise<Uint8Array>;
}

export interface OpenedCatalog {
  /** Location for display. */
  readonly address: string;
  /** Text that changes whenever the content changes. */
  readonly stamp: string;
  readonly files: readonly CatalogFile[];
}

export interface CatalogDirectory {
  readonly name: string;
  /** Digest of the content. Undefined if the directory does not exist or contains no catalog. */
  readonly digest: string | undefined;
}

/** All methods reject with a CodedError 'catalog', whose message is one sentence. */
export interface CatalogFiles {
  open(place: CatalogPlace): Promise<OpenedCatalog>;
  /** Catalog directory that masters copy among each other; undefined for an image. */
  copy(place: CatalogPlace): Promise<CatalogDirectory | undefined>;
  /** Returns the manifests of a bundle image as YAML or JSON texts. */
  bundle(image: string): Promise<readonly string[]>;
}

/** Port for catalogs on the host that runs the controllers. Implemented by `src/openshift/operators/olm/io`. */

export type CatalogPlace =
  /** Path below the host's directory of catalogs. */
  | { readonly kind: 'directory'; readonly path: string }
  /** Image in the host's image store; the catalog is a directory in it. */
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
  /** Changes with the content. */
  readonly stamp: string;
  readonly files: readonly CatalogFile[];
}

export interface CatalogDirectory {
  readonly name: string;
  /** Undefined when the directory does not exist or contains no catalog. */
  readonly digest: string | undefined;
}

/** All methods throw CodedErrors 'catalog' with one sentence. */
export interface CatalogFiles {
  open(place: CatalogPlace): Promise<OpenedCatalog>;
  /** Directory of a catalog that masters copy. Undefined for an image. */
  copy(place: CatalogPlace): Promise<CatalogDirectory | undefined>;
  /** Manifests of a bundle image as YAML or JSON texts. */
  bundle(image: string): Promise<readonly string[]>;
}

/** Registries for imports into image streams. */
import type { PullCredentials } from '../../../api/kinds/identity/secrets/pull-credentials.ts';
import type { JsonObject } from '../../../api/meta/object.ts';

/** Metadata of an image in a registry. */
export interface RegistryImage {
  /** Digest of the manifest, or of the index of a multi-platform image. */
  readonly digest: string;
  /** Name by which the image can be pulled: `registry/repository@digest`. */
  readonly pullSpec: string;
  /** Image configuration for the platform of this API server. */
  readonly configuration: JsonObject;
  readonly layers: readonly { readonly name: string; readonly size: number; readonly mediaType: string }[];
}

export interface ImageRegistries {
  /**
   * Reads the metadata of an image. Returns undefined for a registry that the host configuration does not name, because
   * users must not choose the server's connections. `credentials` apply to the registry itself, not to its mirrors.
   * Throws an Error whose message is shown to the user.
   */
  inspect(name: string, credentials?: PullCredentials): Promise<RegistryImage | undefined>;
}

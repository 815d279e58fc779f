/** Registries for imports into image streams. */
import type { PullCredentials } from '../../../api/kinds/secrets/pull-credentials.ts';
import type { JsonObject } from '../../../api/meta/object.ts';

/** What a registry has under a name. */
export interface RegistryImage {
  /** Digest of the manifest or, for several platforms, of the index. */
  readonly digest: string;
  /** `registry/repository@digest`. */
  readonly pullSpec: string;
  /** The configuration for the platform of this API server. */
  readonly configuration: JsonObject;
  readonly layers: readonly { readonly name: string; readonly size: number; readonly mediaType: string }[];
}

export interface ImageRegistries {
  /**
   * Undefined for a registry that the hosts' configuration does not name: a user must not choose what this server
   * connects to. `credentials` are for the registry itself, not for its mirrors. Throws an Error whose message is shown
   * to the user.
   */
  inspect(name: string, credentials?: PullCredentials): Promise<RegistryImage | undefined>;
}

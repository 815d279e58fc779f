import type { RegistryAuth } from '../../runtime/port.ts';

/**
 * Credentials of the kubelet's exec plug-ins. Implemented by `src/kubelet/io/credential-providers`. Source: KEP-2133.
 */
export interface CredentialProviders {
  /** Returns undefined when no provider matches or none has credentials. Provider failures are logged. */
  find(image: string): Promise<RegistryAuth | undefined>;
}

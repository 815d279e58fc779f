import { CodedError } from '../../base/errors.ts';
import type { BootstrapFile } from './bootstrap.ts';
import { type Joined, rolesOf } from './joined.ts';

/**
 * Socket of another container runtime: `node.containerRuntimeEndpoint` of the bootstrap file. Throws CodedError
 * 'bad-config' on masters: the pods of the control plane access files of the host as root, which only the embedded
 * runtime supports.
 */
export function runtimeEndpointOf(
  file: BootstrapFile | undefined,
  joined: Joined | undefined,
  bootstrapFile: string,
): string | undefined {
  const endpoint = file?.node?.containerRuntimeEndpoint;
  if (endpoint === undefined || rolesOf(file, joined).every((role) => role === 'node')) return endpoint;
  throw new CodedError(
    'bad-config',
    `${bootstrapFile}: node.containerRuntimeEndpoint: masters need the embedded runtime; set roles: [node], or remove it`,
  );
}

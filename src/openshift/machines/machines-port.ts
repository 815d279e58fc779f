/** Ports of the machine controllers to hosts and the store. */

import type { HostHardware } from './kinds/machine-types.ts';
import type { SshAddress } from './kinds/ssh-address.ts';

export interface SshTarget {
  readonly address: SshAddress;
  /** PEM or OpenSSH text. */
  readonly privateKey: string;
  /** `ssh-ed25519 AAAA…`: the only host key that is accepted. */
  readonly hostKey: string;
}

export interface JoinRequest {
  readonly roles: readonly string[];
  /** Name of the host and of its future Node. */
  readonly nodeName: string;
}

export interface SealedJoin {
  /** Base64, decrypted with the host's private key. */
  readonly sealed: string;
  readonly tokenId: string;
  /** RFC 3339. */
  readonly expires: string;
}

export interface StoreMemberState {
  readonly name: string;
  readonly voter: boolean;
  readonly healthy: boolean;
}

export interface MachineProvisioner {
  /** A join token for the roles, encrypted for an X25519 public key. */
  seal(request: JoinRequest, sealingKey: string): Promise<SealedJoin>;
  /** Deletes a token. Succeeds when it does not exist. */
  revoke(tokenId: string): Promise<void>;
  /** Throws CodedErrors that name the address. */
  inspect(target: SshTarget): Promise<HostHardware>;
  install(target: SshTarget, request: JoinRequest): Promise<void>;
  /** Removes the host from the cluster and stops it. `purge` deletes its data. */
  reset(target: SshTarget, purge: boolean): Promise<void>;
  members(): Promise<readonly StoreMemberState[]>;
  removeMember(name: string): Promise<void>;
}

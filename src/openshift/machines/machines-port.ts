/** Port of the machine controllers to hosts and to the store. */

import type { HostHardware } from './kinds/machine-types.ts';
import type { SshAddress } from './kinds/ssh-address.ts';

export interface SshTarget {
  readonly address: SshAddress;
  /** Private key in PEM or OpenSSH format. */
  readonly privateKey: string;
  /** The only host key that is accepted, as `ssh-ed25519 AAAA…`. */
  readonly hostKey: string;
}

export interface JoinRequest {
  readonly roles: readonly string[];
  /** Name of the host, and of the Node that it will register. */
  readonly nodeName: string;
}

export interface SealedJoin {
  /** Encrypted join token in base64. The host decrypts it with its private key. */
  readonly sealed: string;
  readonly tokenId: string;
  /** Time at which the token expires (RFC 3339). */
  readonly expires: string;
}

export interface StoreMemberState {
  readonly name: string;
  readonly voter: boolean;
  readonly healthy: boolean;
}

export interface MachineProvisioner {
  /** Creates a join token for the roles, encrypted for an X25519 public key. */
  seal(request: JoinRequest, sealingKey: string): Promise<SealedJoin>;
  /** Deletes a join token. Succeeds if the token does not exist. */
  revoke(tokenId: string): Promise<void>;
  /** Reads the hardware of the host. Throws CodedErrors that name the address. */
  inspect(target: SshTarget): Promise<HostHardware>;
  install(target: SshTarget, request: JoinRequest): Promise<void>;
  /**
   * Removes the host from the cluster and stops it. If `purge` is true, also deletes the data of the cluster on the
   * host.
   */
  reset(target: SshTarget, purge: boolean): Promise<void>;
  members(): Promise<readonly StoreMemberState[]>;
  removeMember(name: string): Promise<void>;
}

import type { PoolFragment } from '../core/pools/render.ts';

/** Functions and facts that the machine config controllers need from the host process. */
export interface MachineConfigFacts {
  /** Version of this release. */
  readonly version: string;
  /** Merges the fragments of a pool, given in any order. The error names the fragment and the field. */
  readonly merge: (fragments: readonly PoolFragment[]) => { readonly spec: object } | { readonly error: string };
  /** Parses the kubelet arguments in a NodeConfig. Throws CodedErrors. */
  readonly nodeArguments: (text: string) => Readonly<Record<string, readonly string[]>>;
  readonly md5: (text: string) => string;
  readonly base64: (text: string) => string;
  /** Name of the node whose store member is the leader; undefined if it is unknown. */
  readonly storeLeader: () => string | undefined;
}

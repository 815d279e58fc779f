import type { PoolFragment } from '../core/pools/render.ts';

/** Ports of the machine config controllers. */
export interface MachineConfigFacts {
  /** Version of this release. */
  readonly version: string;
  /** Merges the fragments of a pool, independent of their order. The error names fragment and field. */
  readonly merge: (fragments: readonly PoolFragment[]) => { readonly spec: object } | { readonly error: string };
  /** Kubelet arguments in a NodeConfig. Throws CodedErrors. */
  readonly nodeArguments: (text: string) => Readonly<Record<string, readonly string[]>>;
  readonly md5: (text: string) => string;
  readonly base64: (text: string) => string;
  /** Name of the node whose member leads the store. Undefined when unknown. */
  readonly storeLeader: () => string | undefined;
}

import type { PoolFragment } from '../../core/reconcile/machine-config/render.ts';

/** What the machine config controllers need from outside. */
export interface MachineConfigFacts {
  /** Of this release. */
  readonly version: string;
  /** Merges the fragments of a pool, in whatever order they are given; an error names fragment and field. */
  readonly merge: (fragments: readonly PoolFragment[]) => { readonly spec: object } | { readonly error: string };
  /** The kubelet's arguments in a NodeConfig. Throws CodedErrors. */
  readonly nodeArguments: (text: string) => Readonly<Record<string, readonly string[]>>;
  /** Hexadecimal MD5 of a text. */
  readonly md5: (text: string) => string;
  /** Base64 of a text. */
  readonly base64: (text: string) => string;
  /** Name of the node whose member leads the store; undefined: not known. */
  readonly storeLeader: () => string | undefined;
}

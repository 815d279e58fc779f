/** Inputs and processes of control-plane components on this host, as the installer of revisions needs them. */
import type { HostState } from '../../../core/revisions/index.ts';

export type { HostState } from '../../../core/revisions/index.ts';

export const OPERANDS = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;
export type Operand = (typeof OPERANDS)[number];

export interface Inputs {
  /** Of all files that count. */
  readonly digest: string;
  /** Of those that the component reads at its start only. */
  readonly restartDigest: string;
  /** Digests of the files that count, by name. */
  readonly files: ReadonlyMap<string, string>;
}

/**
 * The files of one component: the ones that administrators and the host process write, a copy of them for each
 * revision, and the copy that the component reads. All methods reject with an Error that names the file.
 */
export interface OperandFiles {
  readState(): Promise<HostState>;
  /** Reaches the disk before it resolves. */
  writeState(state: HostState): Promise<void>;
  /** The files as they are now. */
  inputs(): Promise<Inputs>;
  /** Copies the files of now to the directory of the revision, with the settings of the cluster laid over them. */
  keep(revision: number, overlay: string): Promise<Inputs>;
  /** The files that count of a kept revision, as they were before settings were laid over them. */
  kept(revision: number): Promise<Inputs | undefined>;
  /** The component reads the files of this revision from now on. */
  apply(revision: number): Promise<void>;
  /** Copies files that the component follows, and those that do not count, to where it reads them. */
  follow(): Promise<void>;
  remove(revision: number): Promise<void>;
  /** `listener` may be called too often. Returns the function that ends it. */
  watch(listener: () => void): () => void;
}

export interface Health {
  readonly state: 'healthy' | 'starting' | 'crashing';
  /** What is wrong, with the last error of the component's log. */
  readonly message: string;
}

export interface OperandProcess {
  /** Of the container that was started after `sinceMs`. */
  health(sinceMs: number): Promise<Health>;
  /** Ends the container; the kubelet starts another at once. Does nothing without one. */
  restart(): Promise<void>;
}

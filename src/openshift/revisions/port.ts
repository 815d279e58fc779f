/** Ports of the revision installer to the inputs and processes of control-plane components on this host. */
import type { HostState } from './core/index.ts';

export type { HostState } from './core/index.ts';

export const OPERANDS = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;
export type Operand = (typeof OPERANDS)[number];

export interface Inputs {
  /** Digest of all files that are part of a revision. */
  readonly digest: string;
  /** Digest of the files that the component reads only at start. */
  readonly restartDigest: string;
  /** Digests of the relevant files, by name. */
  readonly files: ReadonlyMap<string, string>;
}

/**
 * Files of one component: the files that administrators and the host process write, a copy of these files for each
 * revision, and the copy that the component reads. All methods reject with an Error that names the file.
 */
export interface OperandFiles {
  readState(): Promise<HostState>;
  /** Resolves when the state is on disk. */
  writeState(state: HostState): Promise<void>;
  /** Digests of the current files. */
  inputs(): Promise<Inputs>;
  /** Stores a copy of the current files as this revision, with the cluster's settings applied. */
  keep(revision: number, overlay: string): Promise<Inputs>;
  /** Digests of a stored revision's files before settings were applied; undefined if the revision is not stored. */
  kept(revision: number): Promise<Inputs | undefined>;
  /** Switches the component to the files of this revision. */
  apply(revision: number): Promise<void>;
  /** Copies current files whose changes need no restart to the directory that the component reads. */
  follow(): Promise<void>;
  remove(revision: number): Promise<void>;
  /** Calls `listener` after changes, and sometimes without a change. Returns a function that stops the watch. */
  watch(listener: () => void): () => void;
}

export interface OperandHealth {
  readonly state: 'healthy' | 'starting' | 'crashing';
  /** Description of the fault, with the last error in the component's log. */
  readonly message: string;
}

export interface OperandProcess {
  /** Health of the container that was started after `sinceMs`. */
  health(sinceMs: number): Promise<OperandHealth>;
  /** Stops the container, which the kubelet then restarts immediately. Does nothing if there is no container. */
  restart(): Promise<void>;
}

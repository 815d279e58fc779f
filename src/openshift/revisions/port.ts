/** Ports of the revision installer to the inputs and processes of control-plane components on this host. */
import type { HostState } from './core/index.ts';

export type { HostState } from './core/index.ts';

export const OPERANDS = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;
export type Operand = (typeof OPERANDS)[number];

export interface Inputs {
  /** Digest of all relevant files. */
  readonly digest: string;
  /** Digest of the files that the component reads only at start. */
  readonly restartDigest: string;
  /** Digests of the relevant files, by name. */
  readonly files: ReadonlyMap<string, string>;
}

/**
 * Files of one component: those written by administrators and the host process, a copy of them for each revision, and
 * the copy that the component reads. All methods reject with an Error that names the file.
 */
export interface OperandFiles {
  readState(): Promise<HostState>;
  /** Resolves when the state is on disk. */
  writeState(state: HostState): Promise<void>;
  /** Current files. */
  inputs(): Promise<Inputs>;
  /** Copies the current files to the directory of the revision and applies the cluster's settings to them. */
  keep(revision: number, overlay: string): Promise<Inputs>;
  /** Relevant files of a stored revision, before settings were applied. */
  kept(revision: number): Promise<Inputs | undefined>;
  /** Switches the component to the files of this revision. */
  apply(revision: number): Promise<void>;
  /** Copies files that the component reloads, and irrelevant ones, to the location from which it reads them. */
  follow(): Promise<void>;
  remove(revision: number): Promise<void>;
  /** `listener` may be called without a change. Returns a function that stops the watch. */
  watch(listener: () => void): () => void;
}

export interface Health {
  readonly state: 'healthy' | 'starting' | 'crashing';
  /** Description of the fault with the last error in the component's log. */
  readonly message: string;
}

export interface OperandProcess {
  /** Health of the container that was started after `sinceMs`. */
  health(sinceMs: number): Promise<Health>;
  /** Stops the container, which the kubelet restarts immediately. Does nothing when there is none. */
  restart(): Promise<void>;
}

/** A mounted cgroup hierarchy. */
export interface Hierarchy {
  /** Absolute mount point. */
  readonly mount: string;
  readonly version: 'v1' | 'v2';
  /** v1: the controllers mounted here (`cpu`, `cpuacct`, `name=systemd`). v2: those in cgroup.controllers. */
  readonly controllers: readonly string[];
}

export type CgroupOperation =
  | { readonly op: 'mkdir'; readonly directory: string }
  /**
   * Copies the parent's value if the file is empty: a v1 cpuset accepts no process before its cpus and mems are set.
   */
  | { readonly op: 'inherit'; readonly directory: string; readonly file: string }
  /** `optional`: errors are ignored if the kernel lacks this file, or the cgroup does not permit delegation. */
  | {
      readonly op: 'write';
      readonly directory: string;
      readonly file: string;
      readonly value: string;
      readonly optional: boolean;
    };

/** Access to the mounted hierarchies, implemented in `kubelet/io/cgroupfs`. */
export interface CgroupFileSystem {
  /** Mounted hierarchies from /proc/self/mountinfo. */
  hierarchies(): Promise<readonly Hierarchy[]>;
  /**
   * Performs operations in order. Throws `CodedError('cgroup-write')` with the file name if a write that is not
   * optional fails.
   */
  perform(operations: readonly CgroupOperation[]): Promise<void>;
  /** Names of the subdirectories; empty if the directory does not exist. */
  list(directory: string): Promise<readonly string[]>;
  /** Undefined if the file does not exist. */
  read(directory: string, file: string): Promise<string | undefined>;
  /** Kills every process in the tree, then removes it. A missing directory is no error. */
  removeTree(directory: string): Promise<void>;
}

/**
 * A property of a unit under its D-Bus name. Resource limits are unsigned 64-bit numbers. Source:
 * org.freedesktop.systemd1(5).
 */
export interface UnitProperty {
  readonly name: string;
  readonly value: bigint;
}

/** Slices of the service manager, implemented in `kubelet/io/systemd`. Used only with the systemd driver. */
export interface SliceManager {
  /** Starts the slice with its parents and sets its run-time properties. Idempotent. */
  ensure(slice: string, properties: readonly UnitProperty[]): Promise<void>;
  /** Stops the slice with all units in it. A missing slice is no error. */
  stop(slice: string): Promise<void>;
}
